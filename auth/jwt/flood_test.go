package jwt_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/auth/authtest"
	"github.com/pawlhq/pawl/auth/jwt"
	"github.com/pawlhq/pawl/transitions"
)

// forged returns a token with an unknown key. Its signature is never verified.
func forged(good string, n int64) string {
	head := base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"alg":"ES256","kid":"forged %d"}`, n))
	_, rest, _ := strings.Cut(good, ".")
	return head + "." + rest
}

// flood sends forged tokens from several goroutines until stop, and counts them.
func flood(t testing.TB, v *jwt.Verifier, good string, from int, sent *atomic.Int64, most int64) (wait func()) {
	var all sync.WaitGroup
	for range from {
		all.Go(func() {
			for n := sent.Add(1); n <= most && t.Context().Err() == nil; n = sent.Add(1) {
				p, err := v.Verify(t.Context(), forged(good, n))
				assert.Errorf(t, err, "a forged token is taken: %+v", p)
			}
		})
	}
	return all.Wait
}

// A flood of 10,000 forged tokens causes one fetch and does not delay callers with known keys.
func TestForgedKeyFloodCausesOneFetch(t *testing.T) {
	idp := authtest.NewProvider(t)
	v, clock := newRemote(t, idp)
	clock.stopped = time.Now() // even on a slow machine
	good := idp.Token(map[string]any{"exp": time.Now().Add(100 * time.Hour).Unix()})
	for round := range 2 {
		var sent atomic.Int64
		wait := flood(t, v, good, 8, &sent, 10_000)
		for n := 0; sent.Load() < 10_000; n++ {
			fresh := idp.Token(map[string]any{"n": n, "nbf": nil}) // not cached
			for _, token := range []string{good, fresh} {
				_, err := v.Verify(t.Context(), token)
				require.NoError(t, err, "a good caller is refused meanwhile")
			}
		}
		wait()
		assert.Equalf(t, 2+round, idp.Fetches(), "after %d forged tokens the keys were fetched times", (round+1)*10_000)
		wantRefused(t, v, forged(good, 0), auth.UnknownKey)
		clock.move(jwt.ForcedEvery)
	}
	s := v.Stats()
	assert.Truef(t, s.Reads == 3 && s.Failures == 0, "%+v", s)
}

// While the provider hangs, a flood waits for it, but valid callers do not.
func TestHangingProviderDelaysNoValidCaller(t *testing.T) {
	idp := authtest.NewProvider(t)
	v, _ := newRemote(t, idp)
	good := idp.Token(nil)
	release := idp.Hang()
	defer release()
	waits := make(chan struct{})
	go func() {
		defer close(waits)
		_, _ = v.Verify(t.Context(), forged(good, 1))
	}()
	idp.Hangs() // a caller waits for keys
	for n := range 20 {
		_, err := v.Verify(t.Context(), idp.Token(map[string]any{"n": n}))
		require.NoError(t, err)
	}
	release()
	<-waits
}

// A token with any alteration is rejected.
func FuzzAlteredToken(f *testing.F) {
	idp := authtest.NewProvider(f)
	v := local(f, idp, func(c *jwt.Config) { c.Cache = 1 })
	good := idp.Token(nil)
	f.Add(uint16(0), uint16(1), "f")
	f.Add(uint16(len(good)), uint16(0), "=")
	f.Add(uint16(20), uint16(4), "")
	f.Add(uint16(len(good)-1), uint16(1), "B")
	f.Add(uint16(0), uint16(strings.Index(good, ".")), base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)))
	f.Fuzz(func(t *testing.T, at, cut uint16, put string) {
		begin := int(at) % (len(good) + 1)
		end := min(begin+int(cut), len(good))
		altered := good[:begin] + put + good[end:]
		p, err := v.Verify(t.Context(), altered)
		assert.Falsef(t, err == nil && altered != good, "%q is taken: %+v", altered, p)
	})
}

// For any signed claims, the principal is valid and has only the claimed grants.
func FuzzClaims(f *testing.F) {
	secret := []byte(strings.Repeat("s", 32))
	v := local(f, authtest.NewProvider(f), func(c *jwt.Config) {
		c.Keys, c.Secret, c.Algorithms, c.Cache = nil, secret, []string{"HS256"}, 1
	})
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.HS256, Key: secret}, nil)
	require.NoError(f, err)
	f.Add(claimsJSON(f, map[string]any{"scope": "read submit:order/pay", "roles": []string{"*", "clerk"}}))
	f.Add(claimsJSON(f, map[string]any{"sub": "pawl:timer", "tenant": "a\x00b"}))
	f.Add(claimsJSON(f, map[string]any{"exp": 1e18, "nbf": -1, "aud": []any{"pawl", 1}}))
	f.Fuzz(func(t *testing.T, payload string) {
		signed, err := signer.Sign([]byte(payload))
		if err != nil {
			t.Skip(err)
		}
		token, err := signed.CompactSerialize()
		if err != nil {
			t.Skip(err)
		}
		p, err := v.Verify(t.Context(), token)
		if err != nil {
			assert.Truef(t, p.Tenant == "" && p.Grants == nil, "%q is refused, and is %+v", payload, p)
			return
		}
		assert.Truef(t, strings.Contains(payload, authtest.Audience) && p.Proof == (auth.Proof{Kind: auth.JWT, By: authtest.Issuer}) &&
			p.Until.After(time.Now()),
			"%q is taken: %+v", payload, p)
		if transitions.CheckTenant(p.Tenant) != nil || p.Tenant == "" || p.Actor == "" || strings.HasPrefix(p.Actor, transitions.Reserved) ||
			transitions.TextProblem(p.Actor, transitions.MaxActor) != "" || transitions.HasRole(p.Roles, "a role that nobody has") {
			t.Errorf("%q is taken: %+v", payload, p)
		}
		for _, g := range p.Grants {
			if again, err := auth.ParseGrant(g.String()); err != nil || again != g {
				t.Errorf("%q gives %q", payload, g)
			}
		}
	})
}
