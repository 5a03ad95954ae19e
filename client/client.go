package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/internal/kernel/backoff"
	"github.com/pawlhq/pawl/workflow"
)

// Config configures a Client. Only URLs is required.
type Config struct {
	// URLs are the addresses of nodes or load balancers, such as "https://pawl.example". The client stays with one that responds. They must
	// not contain a user name or password; use Token.
	URLs []string

	// Token is the credential: a token of an identity provider, an API key or a ticket.
	Token string
	// TokenSource returns the credential, instead of Token. It is called before each attempt, once more after a rejection, and during
	// subscriptions. It should cache a token until shortly before its expiry.
	TokenSource func(context.Context) (string, error)

	// PlainHTTP allows sending the credential without TLS to other machines, where it can be intercepted. By default New rejects such URLs
	// in combination with a Token or a TokenSource.
	PlainHTTP bool

	// Tenant, Actor and Roles identify the caller if authentication is disabled.
	Tenant, Actor string
	Roles         []string

	// HTTP is an optional HTTP client. Redirections are never followed. WebSocket connections use dial, proxy and TLS of its Transport if
	// that is an *http.Transport.
	HTTP *http.Client

	// Timeout bounds an attempt, in addition to the requested wait at the node. Defaults to 30 seconds.
	Timeout time.Duration
	Retry   Retry

	// Notify is called with the error of each attempt that will be retried and the delay until then, and with nil when a subscription
	// continues. It is called synchronously.
	Notify func(err error, pause time.Duration)
}

// Retry is the retry policy of a call, and of a subscription until its first message. From then on subscriptions are retried without limit.
type Retry struct {
	Attempts int           // in total, each with all addresses; defaults to 10, 1 disables retries
	First    time.Duration // maximum of the first delay, doubled for each later one; defaults to 100 ms
	Max      time.Duration // maximum delay; defaults to 10 seconds

	// MaxAfter is the maximum Retry-After, which is added to the delay; longer ones are shortened to it. Defaults to 1 minute.
	MaxAfter time.Duration
}

// Client calls nodes. It is safe for concurrent use.
type Client struct {
	cfg    Config
	urls   []string
	at     atomic.Int64 // index of the current URL
	http   *http.Client
	dialer websocket.Dialer

	name     string // prefix of this client's request ids
	requests atomic.Int64
}

// New returns a client without connecting.
func New(c Config) (*Client, error) {
	out := &Client{cfg: c, name: rand.Text()}
	if len(c.URLs) == 0 {
		return nil, errors.New("client: Config.URLs is empty")
	}
	for i, given := range c.URLs {
		if err := checkURL(given); err != nil {
			return nil, fmt.Errorf("client: Config.URLs[%d] %w", i, err)
		}
		if (c.Token != "" || c.TokenSource != nil) && !c.PlainHTTP && exposes(given) {
			return nil, fmt.Errorf("client: Config.URLs[%d]: %w", i, ErrPlainHTTP)
		}
		out.urls = append(out.urls, strings.TrimRight(given, "/"))
	}
	if c.Token != "" && c.TokenSource != nil {
		return nil, errors.New("client: Config has both a Token and a TokenSource")
	}
	out.cfg.Timeout = cmp.Or(c.Timeout, 30*time.Second)
	out.cfg.Retry = Retry{cmp.Or(c.Retry.Attempts, 10), cmp.Or(c.Retry.First, 100*time.Millisecond), cmp.Or(c.Retry.Max, 10*time.Second),
		cmp.Or(c.Retry.MaxAfter, time.Minute)}
	given := c.HTTP
	if given == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.MaxIdleConnsPerHost = 100
		given = &http.Client{Transport: transport}
	}
	own := *given
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	out.http = &own
	out.dialer = websocket.Dialer{Proxy: http.ProxyFromEnvironment, Subprotocols: []string{wire.Subprotocol}}
	if t, ok := own.Transport.(*http.Transport); ok {
		out.dialer.Proxy, out.dialer.NetDialContext, out.dialer.NetDialTLSContext = t.Proxy, t.DialContext, t.DialTLSContext
		if t.TLSClientConfig != nil {
			out.dialer.TLSClientConfig = t.TLSClientConfig.Clone()
			out.dialer.TLSClientConfig.NextProtos = nil // WebSocket requires HTTP/1.1
		}
	}
	return out, nil
}

// checkURL validates a node's URL. Errors do not contain the text, which may include a password.
func checkURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "":
		return errors.New("is not a URL such as https://pawl.example")
	case u.User != nil:
		return errors.New("contains a user name or a password: use Token instead")
	}
	return nil
}

// ErrPlainHTTP reports a credential that would be sent without TLS; see [Config].PlainHTTP.
var ErrPlainHTTP = errors.New("a credential would be sent without TLS to another machine: use https, or allow it with PlainHTTP")

// exposes reports whether requests to a URL can be read on the network.
func exposes(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "https" {
		return false
	}
	addr, err := netip.ParseAddr(u.Hostname())
	return !strings.EqualFold(u.Hostname(), "localhost") && (err != nil || !addr.Unmap().IsLoopback())
}

// notify reports a failed attempt with the delay until the next, or with nil a subscription that continues.
func (c *Client) notify(err error, pause time.Duration) {
	if c.cfg.Notify != nil {
		c.cfg.Notify(err, pause)
	}
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// backoff returns the delay after a number of failures, from 1, with full jitter.
func (c *Client) backoff(failures int) time.Duration {
	return backoff.Delay(workflow.Retry{First: c.cfg.Retry.First, Max: c.cfg.Retry.Max}, failures)
}

// token returns the credential, or "".
func (c *Client) token(ctx context.Context) (string, error) {
	if c.cfg.TokenSource == nil {
		return c.cfg.Token, nil
	}
	return c.cfg.TokenSource(ctx)
}
