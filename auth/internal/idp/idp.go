// Package idp reads documents of identity providers over HTTP.
package idp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// MaxDocument is the maximum size of a document in bytes.
const MaxDocument = 1 << 20

// Get returns a JSON document.
func Get(ctx context.Context, client *http.Client, address string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/jwk-set+json, application/json")
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s responded %s", address, response.Status)
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, MaxDocument+1))
	if err == nil && len(text) > MaxDocument {
		err = fmt.Errorf("%s responded with more than %d bytes", address, MaxDocument)
	}
	return text, err
}

// CheckAddress rejects addresses of which traffic could be read or replaced in transit.
func CheckAddress(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "":
		return errors.New("the address is not a URL")
	case u.User != nil:
		return errors.New("the address contains a password")
	case u.Scheme != "https" && !(u.Scheme == "http" && onThisMachine(u.Host)):
		return errors.New("the address must use https")
	}
	return nil
}

// onThisMachine reports whether a host, optionally with a port, is a loopback address.
func onThisMachine(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// OnlySafe rejects redirects to addresses that CheckAddress rejects, and from https to this machine.
func OnlySafe(r *http.Request, via []*http.Request) error {
	if len(via) > 3 {
		return errors.New("too many redirects")
	}
	if via[0].URL.Scheme == "https" && r.URL.Scheme != "https" {
		return errors.New("the address redirects from https to something else")
	}
	return CheckAddress(r.URL.String())
}
