package server

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/testkit/await"
)

// serving is a server on a free port, which ends with the test.
func serving(t *testing.T, c Config, h http.Handler) *Server {
	t.Helper()
	c.Address = "127.0.0.1:0"
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	s, err := Listen(t.Context(), c)
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- s.Serve(h) }()
	t.Cleanup(func() {
		assert.NoError(t, s.Close())
		assert.ErrorIs(t, <-served, http.ErrServerClosed)
	})
	return s
}

// answering reads what is sent and answers.
var answering = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err == nil {
		_, _ = io.WriteString(w, "well")
	}
})

// dial opens a connection and sends the beginning of something.
func dial(t *testing.T, s *Server, begin string) net.Conn {
	t.Helper()
	return dialFrom(t, s, nil, begin)
}

func dialFrom(t *testing.T, s *Server, from net.Addr, begin string) net.Conn {
	t.Helper()
	c, err := (&net.Dialer{LocalAddr: from}).DialContext(t.Context(), "tcp", s.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	_, err = io.WriteString(c, begin)
	require.NoError(t, err)
	return c
}

const whole = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

// answered reads an answer; its connection stays.
func answered(t *testing.T, c net.Conn) {
	t.Helper()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(await.Patience)))
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err)
	text, err := io.ReadAll(r.Body)
	require.Truef(t, r.StatusCode == 200 && string(text) == "well" && err == nil, "%v %v %v", r.Status, string(text), err)
}

// ended waits until the server closes a connection.
func ended(t *testing.T, c net.Conn) {
	t.Helper()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(await.Patience)))
	var timeout net.Error
	_, err := io.Copy(io.Discard, c)
	require.False(t, errors.As(err, &timeout) && timeout.Timeout(), "the connection stays")
}

// get asks on a connection of its own.
func get(ctx context.Context, s *Server) error {
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.Addr().String(), nil)
	if err != nil {
		return err
	}
	resp, err := c.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if _, err := io.ReadAll(resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	return nil
}
