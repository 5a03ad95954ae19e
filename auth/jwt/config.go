package jwt

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/auth/internal/idp"
	"github.com/pawlhq/pawl/transitions"
)

// Config configures a Verifier. Issuer, Audience, Algorithms and one source of keys are required; other zero fields have the given
// defaults.
type Config struct {
	Issuer     string   // required claim "iss"
	Audience   []string // accepted values of the claim "aud"
	Algorithms []string // RS256, RS384, RS512, PS256, ES256, ES384 or EdDSA; or HS256 alone, with Secret

	// Source of the keys: exactly one. The first three are a JWK Set (RFC 7517) of public keys.
	JWKS   string // URL: https, or http on this machine
	File   string // path
	Keys   []byte // the JWK Set itself
	Secret []byte // for HS256, at least 32 bytes

	Leeway  time.Duration // tolerated clock skew; defaults to 30 seconds, negative means none
	Refresh time.Duration // interval of reading JWKS and File; defaults to 5 minutes
	Survive time.Duration // how long keys are used that cannot be fetched again; defaults to 24 hours
	Cache   int           // number of cached tokens; defaults to 10,000

	Claims Claims
	Tenant string      // of all tokens if Claims.Tenant is ""
	Grants auth.Grants // for all callers, in addition to those of Claims.Grants; defaults to none

	Client *http.Client // for fetching keys; defaults to one with a timeout of 10 seconds
	Log    *slog.Logger // defaults to slog.Default()
}

// Claims names the claims that identify a caller. "." in a name leads into an object, as in "realm_access.roles", unless a claim has the
// full name.
type Claims struct {
	Tenant string // a string; defaults to "tenant", or to none if Config.Tenant is set
	Actor  string // a string; defaults to "sub"
	Roles  string // strings, or one separated by spaces; defaults to "roles"
	Grants string // strings, or one separated by spaces; defaults to "scope". Texts that are not grants are ignored
}

var algorithms = []jose.SignatureAlgorithm{jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.ES256, jose.ES384, jose.EdDSA}

// maxIssuer is the maximum length of an issuer in bytes, so that issuer and actor fit into a proof ([transitions.MaxProof]).
const maxIssuer = 200

// minSecret is the minimum length of a secret for HS256 in bytes (RFC 7518, section 3.2).
const minSecret = 32

func (c Config) withDefaults() (Config, error) {
	c.Leeway = cmp.Or(c.Leeway, 30*time.Second)
	c.Leeway = max(c.Leeway, 0)
	c.Refresh = cmp.Or(c.Refresh, 5*time.Minute)
	c.Survive = cmp.Or(c.Survive, 24*time.Hour)
	c.Cache = cmp.Or(c.Cache, 10_000)
	c.Log = cmp.Or(c.Log, slog.Default())
	c.Client = cmp.Or(c.Client, &http.Client{Timeout: fetchTimeout, CheckRedirect: idp.OnlySafe})
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
		return errors.New("an issuer is required")
	case len(c.Issuer) > maxIssuer:
		return fmt.Errorf("the issuer is longer than %d bytes", maxIssuer)
	case len(c.Audience) == 0 || slices.Contains(c.Audience, ""):
		return errors.New("an audience is required")
	case len(c.Algorithms) == 0:
		return errors.New("algorithms are required, such as RS256")
	case c.Tenant != "" && c.Claims.Tenant != "":
		return errors.New("Tenant and Claims.Tenant exclude each other")
	case c.Refresh < 0 || c.Survive < 0 || c.Cache < 0:
		return errors.New("a time or the size of the cache is negative")
	}
	if err := transitions.CheckTenant(c.Tenant); err != nil {
		return err
	}
	if err := c.checkKeys(); err != nil {
		return err
	}
	for _, a := range c.Algorithms {
		switch {
		case a == string(jose.HS256) && c.Secret == nil:
			return errors.New("HS256 requires a secret")
		case a != string(jose.HS256) && c.Secret != nil:
			return fmt.Errorf("a secret requires HS256 instead of %q", a)
		case c.Secret == nil && !slices.Contains(algorithms, jose.SignatureAlgorithm(a)):
			return fmt.Errorf("the algorithm %q is not one of %v", a, algorithms)
		}
	}
	return nil
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
		return fmt.Errorf("exactly one source of keys is required (JWKS, File, Keys or Secret), not: %s",
			cmp.Or(strings.Join(given, ", "), "none"))
	}
	if c.JWKS != "" {
		if err := idp.CheckAddress(c.JWKS); err != nil {
			return fmt.Errorf("the keys: %w", err)
		}
	}
	if c.Secret != nil && len(c.Secret) < minSecret {
		return fmt.Errorf("the secret has %d bytes instead of at least %d", len(c.Secret), minSecret)
	}
	return nil
}
