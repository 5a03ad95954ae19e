package webhook

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pawlhq/pawl/inbox/signature"
	"github.com/pawlhq/pawl/outbox/sink"
	"github.com/pawlhq/pawl/transitions"
)

const (
	maxHeaders = 64 << 10 // limit of response headers
	maxAnswer  = 16 << 10 // bytes read of a response body; longer responses close the connection
	maxQuote   = 300      // bytes shown of a response body
)

type Sink struct {
	config    Config
	url       *url.URL
	dialer    *net.Dialer
	transport *http.Transport
	closed    atomic.Bool
}

// New returns a sink for an endpoint. It makes no requests before the first Deliver.
func New(c Config) (*Sink, error) {
	u, err := c.check()
	if err != nil {
		return nil, err
	}
	dialer := &net.Dialer{Timeout: c.Timeout, ControlContext: guard{c.Private}.control}
	return &Sink{config: c, url: u, dialer: dialer, transport: &http.Transport{
		Proxy:                  nil,
		DialContext:            dialer.DialContext,
		TLSClientConfig:        c.TLS.Clone(), // the transport modifies it
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // so that response sizes are known
		MaxIdleConns:           c.Connections,
		MaxIdleConnsPerHost:    c.Connections,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: maxHeaders,
	}}, nil
}

// Deliver implements [sink.Sink] with sequential requests.
func (s *Sink) Deliver(ctx context.Context, events []transitions.Logged) []*sink.Failure {
	return sink.InOrder(ctx, events, s.post)
}

func (s *Sink) post(ctx context.Context, e *transitions.Logged) *sink.Failure {
	if s.closed.Load() {
		return sink.Fail(sink.Unavailable, nil, "the sink is closed")
	}
	var connected atomic.Bool
	attempt, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	attempt = httptrace.WithClientTrace(attempt, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})
	request, err := http.NewRequestWithContext(attempt, http.MethodPost, s.config.URL, bytes.NewReader(e.CloudEvent))
	if err != nil {
		return sink.Fail(sink.Unavailable, nil, "cannot create the request") // the error shows the URL
	}
	request.Header.Set("User-Agent", "Pawl")
	maps.Copy(request.Header, s.config.Header)
	request.Header.Set("Content-Type", sink.ContentType)
	for name, value := range sink.Trace(e) {
		request.Header.Set(name, value)
	}
	signature.Sign(s.config.Secrets, request.Header, sink.MessageID(&e.Event), s.config.Now(), e.CloudEvent)

	// Use the transport without a client, because it does not follow redirections.
	response, err := s.transport.RoundTrip(request)
	if err != nil {
		switch {
		case ctx.Err() != nil:
			return sink.CutOff(ctx)
		case !connected.Load():
			return sink.Fail(sink.Unavailable, err, "cannot reach %s: %v", s.url.Host, err)
		case errors.Is(err, context.DeadlineExceeded):
			return sink.Fail(sink.Temporary, err, "%s did not respond within %v", s.url.Host, s.config.Timeout)
		}
		return sink.Fail(sink.Temporary, err, "%s did not respond: %v", s.url.Host, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	kind := meaning(response.StatusCode)
	if kind == "" {
		return nil
	}
	said := fmt.Sprintf("%d %s", response.StatusCode, http.StatusText(response.StatusCode))
	if target, err := response.Location(); err == nil && response.StatusCode/100 == 3 {
		said += ", an ignored redirection to " + target.Scheme + "://" + target.Host
	} else if words := strings.TrimSpace(sink.Printable(string(body), maxQuote)); words != "" {
		said += ": " + words
	}
	f := sink.Fail(kind, err, "%s responded %s", s.url.Host, said)
	f.RetryAfter = retryAfter(response.Header.Get("Retry-After"), s.config.Now())
	return f
}

// Check implements [sink.Checker]. It connects to the endpoint without sending a request.
func (s *Sink) Check(ctx context.Context) error {
	if s.closed.Load() {
		return errors.New("the sink is closed")
	}
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	address := net.JoinHostPort(s.url.Hostname(), cmp.Or(s.url.Port(), s.url.Scheme))
	var conn net.Conn
	var err error
	if s.url.Scheme == "https" {
		dialer := &tls.Dialer{NetDialer: s.dialer, Config: s.config.TLS}
		conn, err = dialer.DialContext(ctx, "tcp", address)
	} else {
		conn, err = s.dialer.DialContext(ctx, "tcp", address)
	}
	if err != nil {
		return fmt.Errorf("cannot reach %s: %w", s.url.Host, err)
	}
	return conn.Close()
}

// Close implements [sink.Sink].
func (s *Sink) Close(context.Context) error {
	s.closed.Store(true)
	s.transport.CloseIdleConnections()
	return nil
}

const maxRetryAfter = 24 * time.Hour

// meaning maps a status to a kind; "" means delivered. The package comment documents the mapping.
func meaning(status int) sink.Kind {
	switch status {
	case http.StatusGone:
		return sink.Gone
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden, http.StatusNotFound,
		http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusProxyAuthRequired, http.StatusUnsupportedMediaType,
		http.StatusMisdirectedRequest, http.StatusTooManyRequests,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return sink.Unavailable
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusLocked, http.StatusTooEarly:
		return sink.Temporary
	}
	switch status / 100 {
	case 2:
		return ""
	case 3:
		return sink.Unavailable
	case 4:
		return sink.Permanent
	}
	return sink.Temporary
}

// retryAfter parses Retry-After (RFC 9110, section 10.2.3), seconds or a date. It returns 0 if
// absent or in the past.
func retryAfter(header string, now time.Time) time.Duration {
	var wait time.Duration
	if seconds, err := strconv.ParseUint(header, 10, 64); err == nil {
		wait = time.Duration(min(seconds, uint64(maxRetryAfter/time.Second))) * time.Second
	} else if at, err := http.ParseTime(header); err == nil {
		wait = at.Sub(now)
	}
	return min(max(wait, 0), maxRetryAfter)
}
