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
	URL     string             // only its host is ever shown, because the rest may contain a token
	Secrets []signature.Secret // sign every message, newest first; several are only needed during a rotation
	// Header is added to every request, for example an Authorization. Names must be canonical, as set by
	// [http.Header.Set].
	Header      http.Header
	Timeout     time.Duration    // of an attempt, from dialling to the end of the response; defaults to 20 seconds
	PlainHTTP   bool             // allows a URL without TLS: signatures prevent forgery, but not eavesdropping
	Private     []netip.Prefix   // allowed non-public addresses, for example of the own network
	TLS         *tls.Config      // private authority or client certificate; optional
	Connections int              // maximum number of idle connections; defaults to 64
	Now         func() time.Time // for timestamps; defaults to time.Now
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
