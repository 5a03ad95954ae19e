package service

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// certified returns the files of a certificate for 127.0.0.1 and example.com, and a client's configuration that trusts it.
func certified(t *testing.T) (certFile, keyFile string, trust *tls.Config) {
	t.Helper()
	s := httptest.NewUnstartedServer(nil)
	s.StartTLS() // which has one
	defer s.Close()
	pair := s.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	require.NoError(t, err)
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	err = errors.Join(
		os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}), 0o600),
		os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), 0o600))
	require.NoError(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return certFile, keyFile, &tls.Config{RootCAs: roots}
}

// HTTP/2, HTTP/1.1 and WebSockets use one port.
func TestService_TLS(t *testing.T) {
	certFile, keyFile, trust := certified(t)
	s := service(t, func(c *Config) { c.Network.CertFile, c.Network.KeyFile = certFile, keyFile })
	require.True(t, strings.HasPrefix(s.URL(), "https://"), s.URL())
	for proto, client := range map[string]*http.Client{
		"HTTP/2.0": {Transport: &http.Transport{TLSClientConfig: trust.Clone(), ForceAttemptHTTP2: true}},
		"HTTP/1.1": {Transport: &http.Transport{TLSClientConfig: trust.Clone()}},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+"/v1/workflows/order/place", strings.NewReader(cart))
		require.NoError(t, err)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", "k")
		resp, err := client.Do(r)
		require.NoError(t, err)
		if _, err := io.ReadAll(resp.Body); err != nil || resp.Body.Close() != nil || resp.StatusCode != 201 || resp.Proto != proto {
			t.Errorf("%s %s, want %s; %v", resp.Proto, resp.Status, proto, err)
		}
		client.CloseIdleConnections()
	}
	dialer := websocket.Dialer{TLSClientConfig: trust.Clone()}
	ws, _, err := dialer.DialContext(t.Context(), "wss"+strings.TrimPrefix(s.URL(), "https")+"/v1/stream", nil)
	require.NoError(t, err)
	defer func() { _ = ws.Close() }()
	require.NoError(t, ws.WriteMessage(websocket.TextMessage, []byte(`{"op":"subscribe","id":"a","after":"start"}`)))
	_, text, err := ws.ReadMessage()
	assert.Truef(t, err == nil && strings.Contains(string(text), "subscribed"), "%s %v", text, err)
}

func TestStart_MissingCertificate(t *testing.T) {
	_, err := Start(t.Context(), Config{Workflows: theOrder(), Address: "127.0.0.1:0", Log: quiet,
		Network: Network{CertFile: "/nowhere/c", KeyFile: "/nowhere/k"}})
	assert.ErrorIs(t, err, os.ErrNotExist)
}
