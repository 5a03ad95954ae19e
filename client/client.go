package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/workflow"
)

// Config is what a client is made with. Only URLs is required.
type Config struct {
	// URLs are the addresses of nodes, such as "https://pawl.example", or of what stands in front of them. One that
	// answers is kept to. None has a user name or a password in it: what is shown to a node is Token.
	URLs []string

	// Token is the credential: a token of an identity provider, an API key or a ticket.
	Token string
	// TokenSource is asked for the credential in place of Token: before each attempt, once more after a refusal, and while a
	// subscription goes on. It keeps a token until shortly before its end.
	TokenSource func(context.Context) (string, error)

	// PlainHTTP sends the credential without TLS to a node that is not this machine, where whoever is on the way can read and use it.
	// By default New refuses such a URL beside a Token or a TokenSource.
	PlainHTTP bool

	// Tenant, Actor and Roles are who calls where nobody is asked for a credential.
	Tenant, Actor string
	Roles         []string

	// HTTP is nil for a client of its own. Redirections are never followed. WebSocket connections are made as its
	// Transport says, where that is an *http.Transport: dial, proxy and TLS.
	HTTP *http.Client

	// Timeout is for one attempt, and what a node is asked to wait is added to it; 30 s.
	Timeout time.Duration
	Retry   Retry

	// Notify is told of each attempt that has failed and is made again, with the pause until then; and with nil when a
	// subscription goes on after that. It is called where the call is, and nothing goes on before it returns.
	Notify func(err error, pause time.Duration)
}

// Retry is how a call is tried again, and a subscription until something of it has come. From then on that is tried again without
// an end.
type Retry struct {
	Attempts int           // in all, with all addresses in each; 0 is 10, 1 is no retry
	First    time.Duration // the longest first pause, and half the second one; 0 is 100 ms
	Max      time.Duration // the longest pause; 0 is 10 s

	// MaxAfter is the longest Retry-After that is waited for, in addition to the pause: a longer one counts as this one. 0 is 1 min.
	MaxAfter time.Duration
}

// Client asks nodes. It is for many goroutines.
type Client struct {
	cfg    Config
	urls   []string
	at     atomic.Int64 // of urls, the one that is asked
	http   *http.Client
	dialer websocket.Dialer

	name     string // what the names of this client's requests begin with
	requests atomic.Int64
}

// New makes a client. It connects to nobody.
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
	out.connect(c.HTTP)
	return out, nil
}

// checkURL refuses what is no address of a node. Its error never has the text, in which a password may be.
func checkURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "":
		return errors.New("is no address such as https://pawl.example")
	case u.User != nil:
		return errors.New("has a user name or a password in it, which no node takes: give the credential as Token")
	}
	return nil
}

// ErrPlainHTTP is why a credential is not sent without TLS; see [Config].PlainHTTP.
var ErrPlainHTTP = errors.New("a credential would be sent without TLS to another machine: use https, or allow it with PlainHTTP")

// exposes reports whether requests to a URL can be read between this machine and the node.
func exposes(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "https" {
		return false
	}
	addr, err := netip.ParseAddr(u.Hostname())
	return !strings.EqualFold(u.Hostname(), "localhost") && (err != nil || !addr.Unmap().IsLoopback())
}

// notify tells of an attempt that is made again after a pause, or with nil of a subscription that goes on.
func (c *Client) notify(err error, pause time.Duration) {
	if c.cfg.Notify != nil {
		c.cfg.Notify(err, pause)
	}
}

// connect takes over how connections are made.
func (c *Client) connect(given *http.Client) {
	if given == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.MaxIdleConnsPerHost = 100
		given = &http.Client{Transport: transport}
	}
	own := *given
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.http = &own
	c.dialer = websocket.Dialer{Proxy: http.ProxyFromEnvironment, Subprotocols: []string{wire.Subprotocol}}
	if t, ok := own.Transport.(*http.Transport); ok {
		c.dialer.Proxy, c.dialer.NetDialContext, c.dialer.NetDialTLSContext = t.Proxy, t.DialContext, t.DialTLSContext
		if t.TLSClientConfig != nil {
			c.dialer.TLSClientConfig = t.TLSClientConfig.Clone()
			c.dialer.TLSClientConfig.NextProtos = nil // WebSocket is HTTP/1.1
		}
	}
}

// Close closes the connections that nobody uses.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// backoff is how long to pause after so many failures, from 1: any time up to a ceiling that doubles (full jitter), so that those who
// were refused together do not come back together.
func (c *Client) backoff(failures int) time.Duration {
	return mathrand.N(workflow.Retry{First: c.cfg.Retry.First, Max: c.cfg.Retry.Max}.Ceiling(failures) + 1)
}

// leave goes on to the address after one that does not answer, unless somebody has done so already.
func (c *Client) leave(at int64) { c.at.CompareAndSwap(at, (at+1)%int64(len(c.urls))) }

// token is the credential, "" for none.
func (c *Client) token(ctx context.Context) (string, error) {
	if c.cfg.TokenSource == nil {
		return c.cfg.Token, nil
	}
	return c.cfg.TokenSource(ctx)
}
