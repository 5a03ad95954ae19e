package webhook

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"time"

	"github.com/pawlhq/pawl/inbox/signature"
)

// Config says how an endpoint is called.
type Config struct {
	// URL is the endpoint's. What it contains beyond the host is shown nowhere, as
	// it may hold a token.
	URL string
	// Secrets sign every message, the newest first. More than one are needed only
	// while one is being replaced.
	Secrets []signature.Secret
	// Header is added to every request, for an Authorization or the like. Its names
	// are in canonical form, as [http.Header.Set] has them.
	Header http.Header
	// Timeout bounds one attempt from the dialling to the end of the answer; 0 is
	// 20 s.
	Timeout time.Duration
	// PlainHTTP allows a URL without TLS: signatures keep messages from being
	// forged, not from being read.
	PlainHTTP bool
	// Private lists the addresses that may be called although they are not public,
	// such as those of the own network.
	Private []netip.Prefix
	// TLS is for a private authority or a client's certificate; nil is Go's
	// default.
	TLS *tls.Config
	// Connections is how many idle ones are kept for the next attempts; 0 is 64.
	Connections int
	// Now is the clock of the timestamps; nil is time.Now.
	Now func() time.Time
}

// check fills in what has a default, makes the rest its own, and returns all
// that is wrong.
func (c *Config) check() (*url.URL, error) {
	c.Timeout = cmp.Or(c.Timeout, 20*time.Second)
	c.Connections = cmp.Or(c.Connections, 64)
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Header, c.Secrets, c.Private = c.Header.Clone(), slices.Clone(c.Secrets), slices.Clone(c.Private)
	var wrong []error
	add := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf("webhook: "+format, args...)) }
	u, err := url.Parse(c.URL)
	switch {
	case err != nil: // the error would show the URL
		add("the URL cannot be parsed")
	case u.Hostname() == "":
		add("the URL has no host")
	case u.Scheme != "https" && u.Scheme != "http":
		add("the URL's scheme is %q; it must be https", u.Scheme)
	case u.Scheme == "http" && !c.PlainHTTP:
		add("the URL is without TLS, which PlainHTTP does not allow")
	}
	if err == nil && u.User != nil {
		add("the URL contains a user; give it as an Authorization in Header")
	}
	if len(c.Secrets) == 0 || slices.ContainsFunc(c.Secrets, signature.Secret.IsZero) {
		add("a secret is missing")
	}
	if c.Timeout < 0 || c.Connections < 0 {
		add("Timeout and Connections must not be negative")
	}
	return u, errors.Join(wrong...)
}
