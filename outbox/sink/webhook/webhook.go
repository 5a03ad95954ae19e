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
	"strings"
	"sync/atomic"
	"time"

	"github.com/pawlhq/pawl/inbox/signature"
	"github.com/pawlhq/pawl/outbox/sink"
	"github.com/pawlhq/pawl/transitions"
)

const (
	maxHeaders = 64 << 10 // of an answer that are read
	maxAnswer  = 16 << 10 // of its body; a connection with more is not used again
	maxQuote   = 300      // of its body that are shown
)

// Sink calls an endpoint.
type Sink struct {
	config    Config
	url       *url.URL
	dialer    *net.Dialer
	transport *http.Transport
	closed    atomic.Bool
}

// New prepares to call an endpoint. Nothing is called before the first Deliver.
func New(c Config) (*Sink, error) {
	u, err := c.check()
	if err != nil {
		return nil, err
	}
	dialer := &net.Dialer{Timeout: c.Timeout, ControlContext: guard{c.Private}.control}
	return &Sink{config: c, url: u, dialer: dialer, transport: &http.Transport{
		Proxy:                  nil,
		DialContext:            dialer.DialContext,
		TLSClientConfig:        c.TLS.Clone(), // the transport adds to it
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // an answer is as long as it is
		MaxIdleConns:           c.Connections,
		MaxIdleConnsPerHost:    c.Connections,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: maxHeaders,
	}}, nil
}

// Deliver implements [sink.Sink]: one request after the other.
func (s *Sink) Deliver(ctx context.Context, events []transitions.Logged) []*sink.Failure {
	return sink.InOrder(ctx, events, s.post)
}

// post makes one attempt at one event.
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
		return sink.Fail(sink.Unavailable, nil, "the request cannot be made") // the error shows the URL
	}
	request.Header.Set("User-Agent", "Pawl")
	maps.Copy(request.Header, s.config.Header)
	request.Header.Set("Content-Type", sink.ContentType)
	for name, value := range sink.Trace(e) {
		request.Header.Set(name, value)
	}
	signature.Sign(s.config.Secrets, request.Header, sink.MessageID(&e.Event), s.config.Now(), e.CloudEvent)

	// The transport alone, without a client: it follows no redirection.
	response, err := s.transport.RoundTrip(request)
	if err != nil {
		return s.unanswered(ctx, err, connected.Load())
	}
	defer response.Body.Close()
	return s.answered(response)
}

// answered says what an answer means. What follows its headers cannot change
// that; it is read so that the connection can be used again.
func (s *Sink) answered(r *http.Response) *sink.Failure {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxAnswer))
	kind := meaning(r.StatusCode)
	if kind == "" {
		return nil
	}
	said := fmt.Sprintf("%d %s", r.StatusCode, http.StatusText(r.StatusCode))
	if target, err := r.Location(); err == nil && r.StatusCode/100 == 3 {
		said += ", a redirection to " + target.Scheme + "://" + target.Host + ", which is not followed"
	} else if words := strings.TrimSpace(sink.Printable(string(body), maxQuote)); words != "" {
		said += ": " + words
	}
	f := sink.Fail(kind, err, "%s answered %s", s.url.Host, said)
	f.RetryAfter = retryAfter(r.Header.Get("Retry-After"), s.config.Now())
	return f
}

// unanswered says what the lack of an answer means.
func (s *Sink) unanswered(ctx context.Context, err error, connected bool) *sink.Failure {
	switch {
	case ctx.Err() != nil:
		return sink.CutOff(ctx)
	case !connected:
		return sink.Fail(sink.Unavailable, err, "%s cannot be reached: %v", s.url.Host, err)
	case errors.Is(err, context.DeadlineExceeded):
		return sink.Fail(sink.Temporary, err, "%s did not answer within %v", s.url.Host, s.config.Timeout)
	}
	return sink.Fail(sink.Temporary, err, "%s did not answer: %v", s.url.Host, err)
}

// Check implements [sink.Checker]: it connects to the endpoint, and sends no
// request.
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
		return fmt.Errorf("%s cannot be reached: %w", s.url.Host, err)
	}
	return conn.Close()
}

// Close implements [sink.Sink].
func (s *Sink) Close(context.Context) error {
	s.closed.Store(true)
	s.transport.CloseIdleConnections()
	return nil
}
