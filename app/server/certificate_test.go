package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/testlog"
)

// issue makes a certificate for this machine, in PEM.
func issue(t *testing.T, name string, ends time.Time) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: ends}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
}

// keep writes files, each of them at once.
func keep(t *testing.T, files Certificate, cert, key []byte) {
	t.Helper()
	for name, text := range map[string][]byte{files.Cert: cert, files.Key: key} {
		require.NoError(t, errors.Join(os.WriteFile(name+".new", text, 0o600), os.Rename(name+".new", name)))
	}
}

// shown is the name in the certificate that the server shows.
func shown(t *testing.T, s *Server) string {
	t.Helper()
	c, err := tls.Dial("tcp", s.Addr().String(), &tls.Config{InsecureSkipVerify: true})
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	return c.ConnectionState().PeerCertificates[0].DNSNames[0]
}

func TestACertificateIsReadAgainWhenItChanges(t *testing.T) {
	dir := t.TempDir()
	files := Certificate{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}
	soon := time.Now().Add(time.Hour)
	cert, key := issue(t, "first", soon)
	keep(t, files, cert, key)
	log := &testlog.Log{}
	s := serving(t, Config{TLS: &files, Log: slog.New(log)}, answering)
	require.Equal(t, "first", shown(t, s))

	other, otherKey := issue(t, "second", soon.Add(time.Hour))
	expired, expiredKey := issue(t, "expired", time.Now().Add(-time.Minute))
	for i, broken := range [][2][]byte{{[]byte("no certificate"), key}, {other, key}, {expired, expiredKey}} {
		keep(t, files, broken[0], broken[1])
		await.Eventually(t, "the broken files are noticed", func() bool { return s.Stats().TLSFailures > int64(i) })
		assert.Equalf(t, "first", shown(t, s), "broken files %d", i)
	}
	require.NoError(t, os.Remove(files.Key))
	await.Eventually(t, "the missing file is noticed", func() bool { return s.Stats().TLSFailures > 3 && log.Count("no such file") == 1 })
	assert.True(t, log.Count("cannot be used") >= 4 && log.Count("PRIVATE") <= 0, strings.Join(log.List(), "\n"))

	keep(t, files, other, otherKey)
	await.Eventually(t, "the new one is served", func() bool { return shown(t, s) == "second" })
	got := s.Stats()
	assert.Truef(t, got.TLSEnds.After(soon) && log.Count("serving with a new") == 1, "%+v", got)
	keep(t, files, cert, key) // also back to what was before
	await.Eventually(t, "the old one is served again", func() bool { return shown(t, s) == "first" })
}

func TestWithoutAUsableCertificateNothingListens(t *testing.T) {
	dir := t.TempDir()
	files := Certificate{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}
	_, err := Listen(t.Context(), Config{Address: "127.0.0.1:0", TLS: &files})
	assert.ErrorIs(t, err, os.ErrNotExist)
	cert, key := issue(t, "expired", time.Now().Add(-time.Minute))
	keep(t, files, cert, key)
	_, err = Listen(t.Context(), Config{Address: "127.0.0.1:0", TLS: &files})
	assert.ErrorContains(t, err, "has ended at")
}

func TestTLSIsNewEnoughAndSlowHandshakesEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files := Certificate{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}
	cert, key := issue(t, "localhost", time.Now().Add(time.Hour))
	keep(t, files, cert, key)
	s := serving(t, Config{TLS: &files, Limits: Limits{HeaderTime: 5 * time.Second}},
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write([]byte(r.Proto))
		}))
	old := &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}
	if c, err := tls.Dial("tcp", s.Addr().String(), old); err == nil {
		_ = c.Close()
		t.Error("TLS 1.1 is spoken")
	}
	ended(t, dial(t, s, "\x16\x03\x01"))
	over, err := tls.Dial("tcp", s.Addr().String(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	require.NoError(t, err)
	defer func() { _ = over.Close() }()
	assert.Equal(t, "h2", over.ConnectionState().NegotiatedProtocol, "it speaks")
	ended(t, over) // it never says what HTTP/2 begins with
}
