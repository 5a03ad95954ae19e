package jwt_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/auth/authtest"
	"github.com/pawlhq/pawl/auth/jwt"
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

// Cost of a cached token during a flood of forged ones from 4 goroutines, which only take their
// share of the processor. BenchmarkVerify is the same without a flood.
func BenchmarkVerifyBesideAFlood(b *testing.B) {
	idp := authtest.NewProvider(b)
	v := local(b, idp)
	token := idp.Token(nil)
	var sent atomic.Int64
	most := int64(1 << 62)
	wait := flood(b, v, token, 4, &sent, most)
	began := time.Now()
	for b.Loop() {
		_, err := v.Verify(b.Context(), token)
		require.NoError(b, err)
	}
	b.ReportMetric(float64(sent.Load())/time.Since(began).Seconds(), "forged/s")
	sent.Store(most)
	wait()
}
