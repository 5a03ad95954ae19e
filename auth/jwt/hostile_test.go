package jwt_test

import (
	"crypto/ecdsa"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/auth/authtest"
	"github.com/pawlhq/pawl/auth/jwt"
)

// sealed signs any header and payload with ES256.
func sealed(t testing.TB, key any, header, payload string) string {
	t.Helper()
	b64 := base64.RawURLEncoding.EncodeToString
	signed := b64([]byte(header)) + "." + b64([]byte(payload))
	hash := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, key.(*ecdsa.PrivateKey), hash[:])
	require.NoError(t, err)
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return signed + "." + b64(signature)
}

func claimsJSON(t testing.TB, changes map[string]any) string {
	t.Helper()
	text, err := json.Marshal(authtest.Claims(changes))
	require.NoError(t, err)
	return string(text)
}

// local returns a verifier with the provider's current keys that does not fetch.
func local(t testing.TB, idp *authtest.Provider, change ...func(*jwt.Config)) *jwt.Verifier {
	t.Helper()
	c := configOf(idp)
	c.JWKS, c.Keys = "", idp.Set()
	for _, f := range change {
		f(&c)
	}
	return newVerifier(t, c)
}

// A header only chooses among the configured algorithms and keys.
func TestHeaderCannotChooseVerification(t *testing.T) {
	idp := authtest.NewProvider(t)
	v := local(t, idp)
	evil := authtest.NewKey(t, "first", jose.ES256)
	own, err := evil.Public().MarshalJSON()
	require.NoError(t, err)
	var asked atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = w.Write([]byte(`{"keys":[` + string(own) + `]}`))
	}))
	t.Cleanup(elsewhere.Close)
	payload, good := claimsJSON(t, nil), idp.Key.Private
	for name, c := range map[string]struct {
		header string
		key    any
		reason auth.Reason // "" if accepted
	}{
		"as it should be":         {`{"alg":"ES256","kid":"first"}`, good, ""},
		"no key is named":         {`{"alg":"ES256"}`, good, ""},
		"an empty name":           {`{"alg":"ES256","kid":""}`, good, ""},
		"an access token":         {`{"alg":"ES256","typ":"application/AT+JWT"}`, good, ""},
		"of no kind":              {`{"alg":"ES256","typ":"JWT"}`, good, ""},
		"a logout token":          {`{"alg":"ES256","typ":"logout+jwt"}`, good, auth.Malformed},
		"a proof of possession":   {`{"alg":"ES256","typ":"application/DPoP+JWT"}`, good, auth.Malformed},
		"its own key":             {`{"alg":"ES256","kid":"first","jwk":` + string(own) + `}`, evil.Private, auth.BadSignature},
		"where its keys are":      {`{"alg":"ES256","kid":"first","jku":"` + elsewhere.URL + `"}`, evil.Private, auth.BadSignature},
		"where its chain is":      {`{"alg":"ES256","kid":"first","x5u":"` + elsewhere.URL + `"}`, evil.Private, auth.BadSignature},
		"a chain that is none":    {`{"alg":"ES256","kid":"first","x5c":["AAAA"]}`, good, auth.Malformed},
		"the payload as it is":    {`{"alg":"ES256","b64":false,"crit":["b64"]}`, good, auth.Malformed},
		"the same, not critical":  {`{"alg":"ES256","b64":false}`, good, auth.Malformed},
		"what nobody understands": {`{"alg":"ES256","kid":"first","crit":["exp"],"exp":1}`, good, auth.Malformed},
		"no extension at all":     {`{"alg":"ES256","kid":"first","crit":[]}`, good, auth.Malformed},
		"a key with a NUL":        {`{"alg":"ES256","kid":"first\u0000"}`, good, auth.UnknownKey},
		"a key that is a number":  {`{"alg":"ES256","kid":1}`, good, auth.Malformed},
		"two algorithms":          {`{"alg":"ES256","alg":"none"}`, good, auth.Malformed},
		"an algorithm, almost":    {`{"alg":"es256"}`, good, auth.BadAlgorithm},
		"no algorithm":            {`{}`, good, auth.BadAlgorithm},
		"algorithms":              {`{"alg":["ES256"]}`, good, auth.BadAlgorithm},
		"of an encrypted one":     {`{"alg":"dir","enc":"A128GCM"}`, good, auth.BadAlgorithm},
		"no object":               {`[]`, good, auth.Malformed},
		"nothing":                 {``, good, auth.BadAlgorithm},
		"very deep": {`{"alg":"ES256","kid":"other","x":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`, good,
			auth.UnknownKey},
		"deep without an end": {`{"alg":"ES256","x":` + strings.Repeat("[", 9000), good, auth.Malformed},
	} {
		t.Run(name, func(t *testing.T) {
			token := sealed(t, c.key, c.header, payload)
			if c.reason != "" {
				wantRefused(t, v, token, c.reason)
			} else if _, err := v.Verify(t.Context(), token); err != nil {
				t.Error(err)
			}
		})
	}
	assert.Equal(t, int64(0), asked.Load(), "a token had keys fetched from where it says times")
}

// A provider may sign unusual claims.
func TestClaimsAreValidated(t *testing.T) {
	idp := authtest.NewProvider(t)
	now := time.Now().Truncate(time.Second)
	v := local(t, idp, func(c *jwt.Config) { c.Leeway = 10 * time.Second })
	v.SetNow(func() time.Time { return now })
	with := func(member string) string { return `{` + member + "," + claimsJSON(t, nil)[1:] }
	without := func(name, member string) string {
		return `{` + member + "," + claimsJSON(t, map[string]any{name: nil})[1:]
	}
	at := func(d time.Duration) string { return fmt.Sprint(now.Add(d).Unix()) }
	for name, c := range map[string]struct {
		payload string
		reason  auth.Reason
	}{
		"an end with a fraction":      {without("exp", `"exp":`+at(0)+`.5`), ""},
		"an end within the leeway":    {without("exp", `"exp":`+at(-9*time.Second)), ""},
		"an end at the leeway":        {without("exp", `"exp":`+at(-10*time.Second)), auth.Expired},
		"an end in 10^18 seconds":     {without("exp", `"exp":1000000000000000000`), auth.BadClaims},
		"an end before there was":     {without("exp", `"exp":-1`), auth.BadClaims},
		"an end that is no number":    {without("exp", `"exp":true`), auth.BadClaims},
		"an end that is null":         {without("exp", `"exp":null`), auth.BadClaims},
		"a begin within the leeway":   {without("nbf", `"nbf":`+at(10*time.Second)), ""},
		"a begin after the leeway":    {without("nbf", `"nbf":`+at(11*time.Second)), auth.NotYetValid},
		"a begin that is null":        {without("nbf", `"nbf":null`), auth.BadClaims},
		"made in the future":          {with(`"iat":` + at(time.Hour)), ""}, // does not affect the validity
		"an audience in a list":       {without("aud", `"aud":["x","pawl"]`), ""},
		"an audience in lists":        {without("aud", `"aud":[["pawl"]]`), auth.WrongAudience},
		"an audience and a number":    {without("aud", `"aud":["pawl",1]`), auth.WrongAudience},
		"an audience that is one":     {without("aud", `"aud":1`), auth.WrongAudience},
		"no audience in a list":       {without("aud", `"aud":[]`), auth.WrongAudience},
		"an audience with blanks":     {without("aud", `"aud":"x pawl"`), auth.WrongAudience},
		"an issuer in a list":         {without("iss", `"iss":["`+authtest.Issuer+`"]`), auth.WrongIssuer},
		"an issuer that is an object": {without("iss", `"iss":{"a":1}`), auth.WrongIssuer},
		"two actors":                  {with(`"sub":"eve"`), auth.Malformed},
		"two tenants":                 {with(`"tenant":"other"`), auth.Malformed},
		"an actor in a list":          {without("sub", `"sub":["ann"]`), auth.BadClaims},
		"a tenant that is a number":   {without("tenant", `"tenant":1`), auth.BadClaims},
		"too many roles":              {with(`"roles":["` + strings.Repeat(`a","`, 256) + `"]`), auth.BadClaims},
		"too many grants":             {with(`"scope":"` + strings.Repeat("read ", 257) + `"`), auth.BadClaims},
		"no JSON":                     {"x", auth.Malformed},
		"JSON that ends early":        {`{"iss":`, auth.Malformed},
		"a list":                      {`[]`, auth.Malformed},
		"null":                        {`null`, auth.WrongIssuer},
		"no UTF-8":                    {with("\"x\":\"\xff\""), auth.Malformed},
		"deeper than JSON is read":    {with(`"x":` + strings.Repeat("[", 10_500)), auth.Malformed},
		"deep":                        {with(`"x":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000)), ""},
	} {
		t.Run(name, func(t *testing.T) {
			token := sealed(t, idp.Key.Private, `{"alg":"ES256","kid":"first"}`, c.payload)
			if c.reason != "" {
				wantRefused(t, v, token, c.reason)
			} else if _, err := v.Verify(t.Context(), token); err != nil {
				t.Error(err)
			}
		})
	}
}

// set returns a JWK Set.
func set(t testing.TB, keys ...map[string]any) []byte {
	t.Helper()
	text, err := json.Marshal(map[string]any{"keys": keys})
	require.NoError(t, err)
	return text
}

// published returns a key as a member of a JWK Set, with changes; nil removes a member.
func published(t testing.TB, key jose.JSONWebKey, changes map[string]any) (members map[string]any) {
	t.Helper()
	text, err := key.MarshalJSON()
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &members))
	maps.Copy(members, changes)
	maps.DeleteFunc(members, func(_ string, v any) bool { return v == nil })
	return members
}

func TestKeysFitAlgorithms(t *testing.T) {
	one, other := authtest.NewKey(t, "first", jose.ES256), authtest.NewKey(t, "other", jose.ES256)
	larger := authtest.NewKey(t, "first", jose.ES384)
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	require.NoError(t, err)
	small := authtest.Key{ID: "first", Algorithm: jose.RS256, Private: weak}
	named, nameless := map[string]any{}, map[string]any{"kid": nil}
	for name, c := range map[string]struct {
		keys   []map[string]any
		token  *authtest.Key
		refuse auth.Reason
	}{
		"named":             {[]map[string]any{published(t, one.Public(), named)}, one, ""},
		"for any algorithm": {[]map[string]any{published(t, one.Public(), map[string]any{"alg": nil, "use": nil})}, one, ""},
		"listed twice":      {[]map[string]any{published(t, one.Public(), named), published(t, one.Public(), named)}, one, ""},
		"two of a name": {[]map[string]any{published(t, one.Public(), named),
			published(t, other.Public(), map[string]any{"kid": "first"})}, one, auth.UnknownKey},
		"two kinds of a name": {[]map[string]any{published(t, one.Public(), named), published(t, larger.Public(), named)}, one, ""},
		"no token's name": {[]map[string]any{published(t, one.Public(), named), published(t, other.Public(), named)},
			&authtest.Key{Algorithm: jose.ES256, Private: one.Private}, auth.UnknownKey},
		"no key's name": {[]map[string]any{published(t, one.Public(), nameless)}, one, auth.UnknownKey},
		"nobody's name": {[]map[string]any{published(t, one.Public(), nameless)},
			&authtest.Key{Algorithm: jose.ES256, Private: one.Private}, ""},
		"to encrypt with": {[]map[string]any{published(t, one.Public(), map[string]any{"use": "enc"}),
			published(t, other.Public(), named)}, one, auth.UnknownKey},
		"for another algorithm": {[]map[string]any{published(t, one.Public(), map[string]any{"alg": "HS256"}),
			published(t, other.Public(), named)}, one, auth.UnknownKey},
		"of another curve": {[]map[string]any{published(t, larger.Public(), named), published(t, other.Public(), named)}, one,
			auth.UnknownKey},
		"a secret of the same name": {[]map[string]any{{"kty": "oct", "kid": "first", "k": "c2VjcmV0"}, published(t, other.Public(), named)}, one,
			auth.UnknownKey},
		"too short": {[]map[string]any{published(t, small.Public(), named), published(t, other.Public(), named)}, &small,
			auth.UnknownKey},
	} {
		t.Run(name, func(t *testing.T) {
			v := local(t, authtest.NewProvider(t), func(config *jwt.Config) {
				config.Algorithms, config.Keys = []string{"ES256", "ES384", "RS256"}, set(t, c.keys...)
			})
			token := c.token.Sign(t, authtest.Claims(nil))
			if c.refuse != "" {
				wantRefused(t, v, token, c.refuse)
			} else if _, err := v.Verify(t.Context(), token); err != nil {
				t.Error(err)
			}
		})
	}
	_, err = jwt.New(jwt.Config{Issuer: "i", Audience: []string{"a"}, Algorithms: []string{"ES384"},
		Keys: set(t, published(t, small.Public(), named))})
	assert.Error(t, err, "a set with a short key alone is taken")
	many := make([]map[string]any, 101)
	for i := range many {
		many[i] = published(t, one.Public(), map[string]any{"kid": fmt.Sprint(i)})
	}
	c := configOf(authtest.NewProvider(t))
	c.JWKS, c.Keys = "", set(t, many...)
	_, err = jwt.New(c)
	assert.ErrorContains(t, err, "more than 100 keys")
}

// The secret is used for any key id.
func TestSecretIgnoresKeyID(t *testing.T) {
	secret := []byte(strings.Repeat("s", 32))
	v := local(t, authtest.NewProvider(t), func(c *jwt.Config) { c.Keys, c.Secret, c.Algorithms = nil, secret, []string{"HS256"} })
	signed := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","kid":"project"}`)) + "." +
		base64.RawURLEncoding.EncodeToString([]byte(claimsJSON(t, nil)))
	sum := hmac.New(sha256.New, secret)
	sum.Write([]byte(signed))
	_, err := v.Verify(t.Context(), signed+"."+base64.RawURLEncoding.EncodeToString(sum.Sum(nil)))
	assert.NoError(t, err)
}

// An invalid or too large set does not change the keys.
func TestInvalidKeySetIsIgnored(t *testing.T) {
	idp := authtest.NewProvider(t)
	answer := atomic.Pointer[string]{}
	good := string(idp.Set())
	answer.Store(&good)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(*answer.Load())) }))
	t.Cleanup(server.Close)
	v := local(t, idp, func(c *jwt.Config) { c.Keys, c.JWKS = nil, server.URL })
	v.Refresh()
	private, err := (&jose.JSONWebKey{Key: idp.Key.Private, KeyID: "first"}).MarshalJSON()
	require.NoError(t, err)
	for i, odd := range []string{strings.Repeat(" ", 1<<20) + good, "", "null", "{}", `{"keys":[]}`, `{"keys":null}`, `{"keys":{}}`, "<html>",
		`{"keys":[` + strings.Repeat("[", 5000), `{"keys":[` + string(private) + `]}`} {
		answer.Store(&odd)
		v.Refresh()
		s := v.Stats()
		assert.Truef(t, s.Failures == int64(i+1) && s.Keys == 1, "%.40q: %+v", odd, s)
		if _, err := v.Verify(t.Context(), idp.Token(nil)); err != nil {
			t.Errorf("%.40q: %v", odd, err)
		}
	}
}

// Keys cannot be injected in transit or by an open redirect of the provider.
func TestKeysAreNotFetchedThroughRedirects(t *testing.T) {
	idp := authtest.NewProvider(t)
	var to atomic.Pointer[string]
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter,
		r *http.Request) {
		http.Redirect(w, r, *to.Load(), http.StatusFound)
	}))
	t.Cleanup(secure.Close)
	v := local(t, idp, func(c *jwt.Config) {
		c.Keys, c.JWKS = nil, secure.URL
		c.Client = jwt.SafeClient(secure.Client().Transport)
	})
	for i, address := range []string{idp.URL, "http://idp.example/keys", secure.URL, "https://u:p@localhost/", "file:///etc/passwd"} {
		to.Store(&address)
		v.Refresh()
		s := v.Stats()
		assert.Truef(t, s.Failures == int64(i+1) && s.Keys == 0, "%s: %+v", address, s)
	}
	assert.Equal(t, 0, idp.Fetches(), "https leads to http fetches")
}
