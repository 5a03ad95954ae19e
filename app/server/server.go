// Package server is the HTTP listener: the number of connections, the duration of each step, TLS, and the client behind a proxy. It does
// not know the handlers.
//
// A slow or silent client holds a connection for a bounded time and a few kilobytes, and nothing else: no handler starts before the header
// of a request is complete.
package server

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// Limits bounds the resources of clients. Zero fields have defaults.
type Limits struct {
	Connections int // at once. More wait for an idle one to be closed, or for any to end. 10,000
	PerAddress  int // of one remote address, except proxies. More are closed at once. Half of Connections

	Header     int           // bytes of a request's header. 64 KiB
	HeaderTime time.Duration // from the first moment of a connection, or the first byte of a further request. 10 seconds
	BodyTime   time.Duration // from there until the request's body is read, even if the handler does not read it. 1 minute
	IdleTime   time.Duration // between two requests. 2 minutes
}

func (l Limits) withDefaults() Limits {
	l.Connections = cmp.Or(l.Connections, 10_000)
	l.PerAddress = cmp.Or(l.PerAddress, max(l.Connections/2, 1))
	l.Header = cmp.Or(l.Header, 64<<10)
	l.HeaderTime = cmp.Or(l.HeaderTime, 10*time.Second)
	l.BodyTime = cmp.Or(l.BodyTime, time.Minute)
	l.IdleTime = cmp.Or(l.IdleTime, 2*time.Minute)
	return l
}

// Config configures a Server. Only Address is required.
type Config struct {
	Address string // host and port
	Limits  Limits
	TLS     *Certificate   // nil: HTTP without TLS
	Proxies []netip.Prefix // trusted for client, host and scheme
	Log     *slog.Logger
}

// Server is an HTTP listener.
type Server struct {
	config       Config
	listener     *listener
	certificates *certificates // nil without TLS
	http         http.Server
}

// Listen binds the address. It accepts no connection before Serve. It returns errors for an invalid certificate or address.
func Listen(ctx context.Context, c Config) (_ *Server, err error) {
	c.Limits = c.Limits.withDefaults()
	s := &Server{config: c}
	if c.TLS != nil {
		if s.certificates, err = newCertificates(*c.TLS, c.Log); err != nil {
			return nil, fmt.Errorf("the TLS certificate: %w", err)
		}
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", c.Address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", c.Address, err)
	}
	s.listener = newListener(l, c.Limits, c.Proxies...)
	return s, nil
}

// Serve answers requests until Shutdown or Close, and returns http.ErrServerClosed. It must be called once.
func (s *Server) Serve(h http.Handler) error {
	limits := s.config.Limits
	s.http.Handler = s.known(h)
	s.http.ErrorLog = log.New(complaints{s.config.Log}, "", 0)
	s.http.ConnState = s.listener.state
	s.http.MaxHeaderBytes = limits.Header
	s.http.ReadHeaderTimeout = limits.HeaderTime
	s.http.ReadTimeout = limits.HeaderTime + limits.BodyTime // ends with the body: it does not bound an answer
	s.http.IdleTimeout = limits.IdleTime
	if s.certificates == nil {
		return s.http.Serve(s.listener)
	}
	// Clients negotiate HTTP/2. WebSockets use HTTP/1.1.
	s.http.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: s.certificates.get}
	// The windows limit the data that a client sends before a handler reads it, and the connections limit their number.
	s.http.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 100, MaxReceiveBufferPerConnection: 256 << 10,
		MaxReceiveBufferPerStream: 64 << 10, SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second,
		WriteByteTimeout: 30 * time.Second}
	return s.http.ServeTLS(s.listener, "", "")
}

// Addr returns the address of the listener.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Stats returns the counts of connections, and the state of the certificate.
func (s *Server) Stats() Stats {
	now := s.listener.stats()
	if s.certificates != nil {
		now.TLSEnds, now.TLSFailures = s.certificates.stats()
	}
	return now
}

// Shutdown stops accepting requests and waits for open ones, except WebSockets.
func (s *Server) Shutdown(ctx context.Context) error { return s.http.Shutdown(ctx) }

// Close closes the listener and all connections.
func (s *Server) Close() error {
	err := s.http.Close()
	_ = s.listener.Close() // needed if Serve was not called
	return err
}

// complaints logs messages of net/http. Clients cause failed handshakes, so those are debug messages.
type complaints struct{ log *slog.Logger }

func (c complaints) Write(line []byte) (int, error) {
	level := slog.LevelWarn
	if bytes.Contains(line, []byte("TLS handshake error")) {
		level = slog.LevelDebug
	}
	c.log.Log(context.Background(), level, strings.TrimSpace(string(line)))
	return len(line), nil
}

// underneath returns the connection below TLS, or the connection itself.
func underneath(c net.Conn) net.Conn {
	if over, ok := c.(*tls.Conn); ok {
		return over.NetConn()
	}
	return c
}
