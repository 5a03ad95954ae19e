package api

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// publicURL is the address at which clients reach the interface. The zero value is the address that they name themselves.
type publicURL struct {
	scheme, host string
	prefix       string // of the path, such as "/pawl"
}

var goodPrefix = regexp.MustCompile(`^(/[A-Za-z0-9._~-]+)*$`)

// CheckPublicURL reports an error for a text that cannot be [Config].PublicURL.
func CheckPublicURL(text string) error {
	_, err := parsePublicURL(text)
	return err
}

// SplitPublicURL returns the origin of a [Config].PublicURL, and its path as a prefix: "https://example.com" and "/pawl". Both are empty
// for an empty text.
func SplitPublicURL(text string) (origin, prefix string) {
	p, _ := parsePublicURL(text)
	return p.origin(), p.prefix
}

func parsePublicURL(text string) (publicURL, error) {
	if text == "" {
		return publicURL{}, nil
	}
	u, err := url.Parse(text)
	if err != nil {
		return publicURL{}, fmt.Errorf("%q is not a URL", text)
	}
	p := publicURL{scheme: u.Scheme, host: u.Host, prefix: strings.TrimSuffix(u.EscapedPath(), "/")}
	if err := CheckOrigins([]string{p.origin()}); err != nil || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return publicURL{}, fmt.Errorf("%q is not a URL such as https://example.com/pawl, with a host in small letters and no query", text)
	}
	if !goodPrefix.MatchString(p.prefix) || strings.Contains(p.prefix+"/", "/./") || strings.Contains(p.prefix+"/", "/../") {
		return publicURL{}, fmt.Errorf("the path of %q is not made of segments of letters, digits, -, ., _ and ~", text)
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(p.prefix, "/"), "/")
	if pawls("/" + first) {
		return publicURL{}, fmt.Errorf("the path of %q begins with /%s, which is an address of Pawl's own", text, first)
	}
	return p, nil
}

// origin returns the origin of pages there, "" for the zero value.
func (p publicURL) origin() string {
	if p.host == "" {
		return ""
	}
	return p.scheme + "://" + p.host
}

// within returns a request without the prefix in its path. A proxy may have removed it already.
func (p publicURL) within(r *http.Request) *http.Request {
	if p.prefix == "" {
		return r
	}
	path, found := cutPrefix(r.URL.Path, p.prefix)
	raw, foundRaw := cutPrefix(r.URL.RawPath, p.prefix)
	if !found || r.URL.RawPath != "" && !foundRaw {
		return r
	}
	own := r.WithContext(r.Context()) // a copy
	at := *r.URL
	at.Path, at.RawPath = path, raw
	own.URL = &at
	return own
}

// cutPrefix reports whether a path is the prefix or below it, and returns the rest.
func cutPrefix(path, prefix string) (rest string, found bool) {
	rest, found = strings.CutPrefix(path, prefix)
	switch {
	case !found || rest != "" && rest[0] != '/':
		return path, false
	case rest == "":
		return "/", true
	}
	return rest, true
}
