package jwt_test

import (
	"encoding/base64"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/auth/authtest"
	"github.com/pawlhq/pawl/auth/jwt"
	"github.com/pawlhq/pawl/workflow"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

func configOf(p *authtest.Provider) jwt.Config {
	return jwt.Config{Issuer: authtest.Issuer, Audience: []string{"other", authtest.Audience}, Algorithms: []string{"ES256"},
		JWKS: p.URL, Leeway: -1, Log: quiet}
}

func newVerifier(t testing.TB, c jwt.Config) *jwt.Verifier {
	t.Helper()
	v, err := jwt.New(c)
	require.NoError(t, err)
	t.Cleanup(v.Stop)
	return v
}

// wantRefused checks that a token is rejected with a reason and that the error does not contain the
// token.
func wantRefused(t *testing.T, v *jwt.Verifier, token string, reason auth.Reason) {
	t.Helper()
	p, err := v.Verify(t.Context(), token)
	refusal, is := errors.AsType[*auth.Refusal](err)
	if !is || refusal.Reason != reason || workflow.CodeOf(err) != workflow.Unauthorized || p.Actor != "" {
		t.Errorf("%q: %+v, %v", token, p, err)
		return
	}
	for part := range strings.SplitSeq(token, ".") {
		assert.Falsef(t, len(part) > 8 && strings.Contains(err.Error(), part), "the error has the token: %v", err)
	}
}

func TestValidTokenReturnsPrincipal(t *testing.T) {
	idp := authtest.NewProvider(t)
	c := configOf(idp)
	c.Claims = jwt.Claims{Tenant: "org.id", Roles: "realm_access.roles", Grants: "https://pawl.example/grants"}
	c.Grants = auth.Grants{{Right: auth.Read}}
	v := newVerifier(t, c)
	v.Start(t.Context())
	end := time.Now().Add(time.Hour).Truncate(time.Second)
	token := idp.Token(map[string]any{"aud": []string{"x", authtest.Audience}, "org": map[string]any{"id": "acme"}, "tenant": "other",
		"realm_access": map[string]any{"roles": []string{"clerk", "*", "boss"}}, "exp": end.Unix(),
		"https://pawl.example/grants": []string{"openid", "submit:order/pay", "read", "submit:Order"}})
	for range 2 { // the second from the cache
		p, err := v.Verify(t.Context(), token)
		require.NoError(t, err)
		assert.Truef(t, p.Tenant == "acme" && p.Actor == "ann" && slices.Equal(p.Roles, []string{"clerk", "boss"}) &&
			p.Grants.String() == "read submit:order/pay" && p.Until.Equal(end) && p.Proof.String() == "jwt "+authtest.Issuer,
			"%+v", p)
	}
	s := v.Stats()
	assert.Truef(t, s.Reads == 1 && s.Failures == 0 && s.Keys == 1 && s.Cached == 1, "%+v", s)
}

func TestAllAlgorithmsAreAccepted(t *testing.T) {
	idp := authtest.NewProvider(t)
	var keys []*authtest.Key
	var names []string
	for _, a := range []jose.SignatureAlgorithm{jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.ES256, jose.ES384, jose.EdDSA} {
		keys = append(keys, authtest.NewKey(t, "key of "+string(a), a))
		names = append(names, string(a))
	}
	idp.Publish(keys...)
	c := configOf(idp)
	c.JWKS, c.Keys, c.Algorithms = "", idp.Set(), names
	v := newVerifier(t, c)
	for i, k := range keys {
		_, err := v.Verify(t.Context(), k.Sign(t, authtest.Claims(nil)))
		assert.NoError(t, err, k.Algorithm)
		// A key is only used with its own algorithm.
		other := keys[(i+1)%len(keys)]
		stolen := authtest.Key{ID: k.ID, Algorithm: other.Algorithm, Private: other.Private}
		wantRefused(t, v, stolen.Sign(t, authtest.Claims(nil)), auth.UnknownKey)
	}
	c.Keys, c.Secret, c.Algorithms = nil, []byte(strings.Repeat("s", 32)), []string{"HS256"}
	v = newVerifier(t, c)
	_, err := v.Verify(t.Context(), authtest.Sign(t, jose.HS256, c.Secret, authtest.Claims(nil)))
	assert.NoError(t, err, "HS256")
	wantRefused(t, v, authtest.Sign(t, jose.HS256, []byte(strings.Repeat("t", 32)), authtest.Claims(nil)), auth.BadSignature)
	wantRefused(t, v, idp.Token(nil), auth.BadAlgorithm)
}

func TestInvalidTokenHasReason(t *testing.T) {
	idp := authtest.NewProvider(t)
	c := configOf(idp)
	c.JWKS, c.Keys = "", idp.Set()
	v := newVerifier(t, c)
	good := idp.Token(nil)
	head, rest, _ := strings.Cut(good, ".")
	payload, signature, _ := strings.Cut(rest, ".")
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`))
	x509 := c.Keys // as a secret, in several encodings
	now := time.Now()
	for name, c := range map[string]struct {
		token  string
		reason auth.Reason
	}{
		"nothing":          {"", auth.Malformed},
		"two parts":        {head + "." + payload, auth.Malformed},
		"no base64":        {head + ".!." + signature, auth.Malformed},
		"a line break":     {head + "." + payload + "\n." + signature, auth.Malformed},
		"too long":         {strings.Repeat("a", 17<<10), auth.Malformed},
		"alg none":         {none + "." + payload + ".", auth.BadAlgorithm},
		"alg none, signed": {none + "." + payload + "." + signature, auth.BadAlgorithm},
		"HS256 with the key": {authtest.Sign(t, jose.HS256, jose.JSONWebKey{Key: x509, KeyID: "first"}, authtest.Claims(nil)),
			auth.BadAlgorithm},
		"another key's":  {authtest.NewKey(t, "first", jose.ES256).Sign(t, authtest.Claims(nil)), auth.BadSignature},
		"an unknown key": {authtest.NewKey(t, "no", jose.ES256).Sign(t, authtest.Claims(nil)), auth.UnknownKey},
		"other claims": {head + "." + base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"eve"}`)) + "." + signature,
			auth.BadSignature},
		"no signature":          {head + "." + payload + ".", auth.BadSignature},
		"expired":               {idp.Token(map[string]any{"exp": now.Add(-time.Second).Unix()}), auth.Expired},
		"no end":                {idp.Token(map[string]any{"exp": nil}), auth.BadClaims},
		"an end that is text":   {idp.Token(map[string]any{"exp": "later"}), auth.BadClaims},
		"an end far away":       {idp.Token(map[string]any{"exp": 1e300}), auth.BadClaims},
		"not yet valid":         {idp.Token(map[string]any{"nbf": now.Add(time.Hour).Unix()}), auth.NotYetValid},
		"a begin that is text":  {idp.Token(map[string]any{"nbf": "now"}), auth.BadClaims},
		"wrong issuer":          {idp.Token(map[string]any{"iss": authtest.Issuer + "/"}), auth.WrongIssuer},
		"no issuer":             {idp.Token(map[string]any{"iss": nil}), auth.WrongIssuer},
		"wrong audience":        {idp.Token(map[string]any{"aud": "pawls"}), auth.WrongAudience},
		"no audience":           {idp.Token(map[string]any{"aud": nil}), auth.WrongAudience},
		"an odd audience":       {idp.Token(map[string]any{"aud": map[string]any{"a": authtest.Audience}}), auth.WrongAudience},
		"no tenant":             {idp.Token(map[string]any{"tenant": nil}), auth.BadClaims},
		"a tenant with a NUL":   {idp.Token(map[string]any{"tenant": "a\x00"}), auth.BadClaims},
		"no actor":              {idp.Token(map[string]any{"sub": ""}), auth.BadClaims},
		"Pawl's own actor":      {idp.Token(map[string]any{"sub": "pawl:timer"}), auth.BadClaims},
		"a consumer's actor":    {idp.Token(map[string]any{"sub": "inbox:payments"}), auth.BadClaims},
		"roles of another kind": {idp.Token(map[string]any{"roles": 7}), auth.BadClaims},
	} {
		t.Run(name, func(t *testing.T) { wantRefused(t, v, c.token, c.reason) })
	}
	_, err := v.Verify(t.Context(), good)
	assert.NoError(t, err)
	assert.Equal(t, 1, v.Stats().Cached, "tokens are remembered; one was good")
}

// Any alteration is rejected, even if a decoder would ignore it.
func TestAlteredTokenIsRejected(t *testing.T) {
	idp := authtest.NewProvider(t)
	c := configOf(idp)
	c.JWKS, c.Keys = "", idp.Set()
	v := newVerifier(t, c)
	good := idp.Token(nil)
	for i := range good {
		for _, b := range []byte("AB-_.=\n z") {
			if altered := good[:i] + string(b) + good[i+1:]; altered != good {
				p, err := v.Verify(t.Context(), altered)
				require.Errorf(t, err, "byte %d as %q is taken: %+v", i, b, p)
			}
		}
	}
}

func TestTokenIsCachedUntilExpiry(t *testing.T) {
	idp := authtest.NewProvider(t)
	c := configOf(idp)
	c.JWKS, c.Keys, c.Leeway, c.Cache = "", idp.Set(), 10*time.Second, 3
	v := newVerifier(t, c)
	now := time.Now()
	v.SetNow(func() time.Time { return now })
	token := idp.Token(map[string]any{"exp": now.Add(time.Minute).Unix()})
	for range 2 {
		_, err := v.Verify(t.Context(), token)
		require.NoError(t, err)
	}
	for now = now.Add(time.Minute + 8*time.Second); ; now = now.Add(time.Second) {
		if p, err := v.Verify(t.Context(), token); err != nil {
			break
		} else if !p.Until.After(now) {
			t.Fatalf("it is %s, and the token is good until %s", now, p.Until)
		}
	}
	wantRefused(t, v, token, auth.Expired)
	for i := range 10 {
		_, err := v.Verify(t.Context(), idp.Token(map[string]any{"exp": now.Add(time.Hour).Unix(),
			"sub": string(rune('a' + i))}))
		require.NoError(t, err)
	}
	assert.Equal(t, 3, v.Stats().Cached, "tokens are remembered")
}

func TestUnsafeConfigIsRejected(t *testing.T) {
	idp := authtest.NewProvider(t)
	file := filepath.Join(t.TempDir(), "keys.json")
	require.NoError(t, os.WriteFile(file, idp.Set(), 0o600))
	private, err := (&jose.JSONWebKey{Key: idp.Key.Private, KeyID: "first"}).MarshalJSON()
	require.NoError(t, err)
	secret := []byte(strings.Repeat("s", 32))
	for want, change := range map[string]func(*jwt.Config){
		"an issuer is required":   func(c *jwt.Config) { c.Issuer = "" },
		"an audience is required": func(c *jwt.Config) { c.Audience = nil },
		"algorithms are required": func(c *jwt.Config) { c.Algorithms = nil },
		"HS256 requires a secret": func(c *jwt.Config) { c.Algorithms = []string{"ES256", "HS256"} },
		`"none" is not one of`:    func(c *jwt.Config) { c.Algorithms = []string{"none"} },
		"a secret requires HS256": func(c *jwt.Config) { c.JWKS, c.Secret = "", secret },
		"the secret has 31 bytes": func(c *jwt.Config) { c.JWKS, c.Secret, c.Algorithms = "", secret[1:], []string{"HS256"} },
		"not: JWKS, a file":       func(c *jwt.Config) { c.File = file },
		"not: none":               func(c *jwt.Config) { c.JWKS = "" },
		"must use https":          func(c *jwt.Config) { c.JWKS = "http://idp.example/keys" },
		"contains a password":     func(c *jwt.Config) { c.JWKS = "https://u:p@idp.example/keys" },
		"is not a URL":            func(c *jwt.Config) { c.JWKS = "keys" },
		"no JWK Set":              func(c *jwt.Config) { c.JWKS, c.Keys = "", []byte("x") },
		"no usable key":           func(c *jwt.Config) { c.JWKS, c.Keys = "", []byte(`{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}`) },
		"a private key":           func(c *jwt.Config) { c.JWKS, c.Keys = "", []byte(`{"keys":[`+string(private)+`]}`) },
		"no such file":            func(c *jwt.Config) { c.JWKS, c.File = "", file+"x" },
		"exclude each other":      func(c *jwt.Config) { c.Tenant, c.Claims.Tenant = "acme", "tenant" },
		"is negative":             func(c *jwt.Config) { c.Cache = -1 },
	} {
		c := configOf(idp)
		change(&c)
		if _, err := jwt.New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
	c := configOf(idp)
	c.JWKS, c.File, c.Tenant = "", file, "acme"
	p, err := newVerifier(t, c).Verify(t.Context(), idp.Token(map[string]any{"tenant": "other"}))
	assert.Truef(t, err == nil && p.Tenant == "acme", "%+v, %v", p, err)
}

// Cost of a cached token.
func BenchmarkVerify(b *testing.B) {
	idp := authtest.NewProvider(b)
	c := configOf(idp)
	c.JWKS, c.Keys = "", idp.Set()
	v := newVerifier(b, c)
	token := idp.Token(nil)
	for b.Loop() {
		_, err := v.Verify(b.Context(), token)
		require.NoError(b, err)
	}
}
