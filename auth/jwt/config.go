package jwt

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/transitions"
)

// Config says which tokens are taken. Issuer, Audience, Algorithms and one source of keys are
// required; every other zero field has the default that stands beside it.
type Config struct {
	Issuer     string   // the claim "iss"
	Audience   []string // the claim "aud" has one of these
	Algorithms []string // RS256, RS384, RS512, PS256, ES256, ES384 or EdDSA; or HS256 alone, with Secret

	// One of these has the keys. The first three are a JWK Set (RFC 7517) of public keys.
	JWKS   string // its address: https, or http on this machine
	File   string // its path
	Keys   []byte // itself
	Secret []byte // of HS256, at least 32 bytes

	Leeway  time.Duration // how far the issuer's clock may be from this one; 30 seconds, negative is none
	Refresh time.Duration // how often JWKS and File are read; 5 minutes
	Survive time.Duration // how long keys are used that cannot be fetched again; 24 hours
	Cache   int           // how many tokens are remembered that were verified; 10,000

	Claims Claims
	Tenant string      // of all, where Claims.Tenant is ""
	Grants auth.Grants // that everybody has, beside those of Claims.Grants; none

	Client *http.Client // to fetch keys with; one that gives up after 10 seconds
	Log    *slog.Logger // slog.Default()
}

// Claims are the names of the claims that say who it is. In one of them "." leads into an object, as in
// "realm_access.roles". A name that has dots itself is found as it is first.
type Claims struct {
	Tenant string // a string; "tenant", or none where Config.Tenant is given
	Actor  string // a string; "sub"
	Roles  string // strings, or one with blanks between; "roles"
	Grants string // likewise; "scope". What is no grant is passed over
}

var algorithms = []jose.SignatureAlgorithm{jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.ES256, jose.ES384, jose.EdDSA}

// maxIssuer is the longest issuer in bytes: with an actor it is still a proof ([transitions.MaxProof]).
const maxIssuer = 200

// minSecret is the shortest secret of HS256 in bytes (RFC 7518, section 3.2).
const minSecret = 32

func (c Config) withDefaults() (Config, error) {
	c.Leeway = cmp.Or(c.Leeway, 30*time.Second)
	c.Leeway = max(c.Leeway, 0)
	c.Refresh = cmp.Or(c.Refresh, 5*time.Minute)
	c.Survive = cmp.Or(c.Survive, 24*time.Hour)
	c.Cache = cmp.Or(c.Cache, 10_000)
	c.Log = cmp.Or(c.Log, slog.Default())
	c.Client = cmp.Or(c.Client, &http.Client{Timeout: fetchTimeout, CheckRedirect: onlySafe})
	c.Claims.Actor = cmp.Or(c.Claims.Actor, "sub")
	c.Claims.Roles = cmp.Or(c.Claims.Roles, "roles")
	c.Claims.Grants = cmp.Or(c.Claims.Grants, "scope")
	if c.Tenant == "" {
		c.Claims.Tenant = cmp.Or(c.Claims.Tenant, "tenant")
	}
	return c, c.check()
}

func (c *Config) check() error {
	switch {
	case c.Issuer == "":
		return errors.New("an issuer is required: only its tokens are taken")
	case len(c.Issuer) > maxIssuer:
		return fmt.Errorf("the issuer has more than %d bytes; it is in every audit row", maxIssuer)
	case len(c.Audience) == 0 || slices.Contains(c.Audience, ""):
		return errors.New("an audience is required: tokens for others are not taken")
	case len(c.Algorithms) == 0:
		return errors.New("the algorithms are required with which tokens are signed, such as RS256")
	case c.Tenant != "" && c.Claims.Tenant != "":
		return errors.New("there is a tenant of all tokens, and a claim that names one: give one of them")
	case c.Refresh < 0 || c.Survive < 0 || c.Cache < 0:
		return errors.New("a time or the size of the cache is negative")
	}
	if err := transitions.CheckTenant(c.Tenant); err != nil {
		return err
	}
	if err := c.checkKeys(); err != nil {
		return err
	}
	return c.checkAlgorithms()
}

func (c *Config) checkKeys() error {
	var given []string
	for _, source := range []struct {
		name  string
		given bool
	}{{"JWKS", c.JWKS != ""}, {"a file", c.File != ""}, {"keys", c.Keys != nil}, {"a secret", c.Secret != nil}} {
		if source.given {
			given = append(given, source.name)
		}
	}
	if len(given) != 1 {
		return fmt.Errorf("the keys come from one place: JWKS, a file, keys or a secret; given: %s", cmp.Or(strings.Join(given, ", "), "none"))
	}
	if c.JWKS != "" {
		return checkAddress(c.JWKS)
	}
	if c.Secret != nil && len(c.Secret) < minSecret {
		return fmt.Errorf("the secret has %d bytes; %d are the least", len(c.Secret), minSecret)
	}
	return nil
}

func (c *Config) checkAlgorithms() error {
	for _, a := range c.Algorithms {
		switch {
		case a == string(jose.HS256) && c.Secret == nil:
			return errors.New("HS256 takes a secret, and none is configured")
		case a != string(jose.HS256) && c.Secret != nil:
			return fmt.Errorf("a secret is for HS256 alone, not for %q", a)
		case c.Secret == nil && !slices.Contains(algorithms, jose.SignatureAlgorithm(a)):
			return fmt.Errorf("the algorithm %q is none of %v", a, algorithms)
		}
	}
	return nil
}

// checkAddress refuses an address of keys that somebody on the way could change.
func checkAddress(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "":
		return errors.New("the address of the keys is no URL")
	case u.User != nil:
		return errors.New("the address of the keys has a password in it")
	case u.Scheme != "https" && !(u.Scheme == "http" && onThisMachine(u.Host)):
		return errors.New("the address of the keys is not https: who is on the way could put in keys of his own")
	}
	return nil
}

func onThisMachine(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// onlySafe refuses to be led to an address that could not be configured, or from https to what listens on this machine.
func onlySafe(r *http.Request, via []*http.Request) error {
	if len(via) > 3 {
		return errors.New("too many redirects")
	}
	if via[0].URL.Scheme == "https" && r.URL.Scheme != "https" {
		return errors.New("the address of the keys leads from https to something else")
	}
	return checkAddress(r.URL.String())
}
