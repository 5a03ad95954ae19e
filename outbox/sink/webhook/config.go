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

// Config configures a webhook sink.
type Config struct {
	// URL is the endpoint. Only its host is ever shown, because the rest may contain a token.
	URL string
	// Secrets sign every message, newest first. Several are only needed during a rotation.
	Secrets []signature.Secret
	// Header is added to every request, for example an Authorization. Names must be canonical, as
	// set by [http.Header.Set].
	Header http.Header
	// Timeout bounds an attempt, from dialling to the end of the response. Defaults to 20 seconds.
	Timeout time.Duration
	// PlainHTTP allows a URL without TLS. Signatures prevent forgery, but not eavesdropping.
	PlainHTTP bool
	// Private lists allowed non-public addresses, for example of the own network.
	Private []netip.Prefix
	// TLS configures a private authority or a client certificate. Optional.
	TLS *tls.Config
	// Connections is the maximum number of idle connections. Defaults to 64.
	Connections int
	// Now returns the time for timestamps. Defaults to time.Now.
	Now func() time.Time
}

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
		add("cannot parse the URL")
	case u.Hostname() == "":
		add("the URL has no host")
	case u.Scheme != "https" && u.Scheme != "http":
		add("the URL has the scheme %q instead of https", u.Scheme)
	case u.Scheme == "http" && !c.PlainHTTP:
		add("the URL has no TLS; set PlainHTTP to allow it")
	}
	if err == nil && u.User != nil {
		add("the URL contains a user; set an Authorization in Header instead")
	}
	if len(c.Secrets) == 0 || slices.ContainsFunc(c.Secrets, signature.Secret.IsZero) {
		add("a secret is missing")
	}
	if c.Timeout < 0 || c.Connections < 0 {
		add("Timeout and Connections must not be negative")
	}
	return u, errors.Join(wrong...)
}
