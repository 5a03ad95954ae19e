package api

import (
	"math"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRates_Burst(t *testing.T) {
	r := newRates("tenant", 2, 10)
	take := func(tenant string, n int, at time.Duration, want time.Duration) {
		t.Helper()
		got := r.take(tenant, n, noon.Add(at))
		assert.Equalf(t, want, got.Round(time.Microsecond), "%d at %v: wait %v", n, at, got)
	}
	take("a", 7, 0, 0)
	take("a", 4, 0, 500*time.Millisecond) // three are left
	take("a", 3, 0, 0)                    // what was refused took nothing
	take("a", 1, 0, 500*time.Millisecond)
	take("b", 10, 0, 0) // another tenant has its own
	take("a", 1, time.Second, 0)
	take("a", 2, time.Second, 500*time.Millisecond)
	take("a", 10, time.Hour, 0) // a long silence saves no more than the burst
	take("a", 1, time.Hour, 500*time.Millisecond)
}

func TestRatesRememberAFewThousandTenants(t *testing.T) {
	r := newRates("tenant", 0.001, 1)
	for i := range 10 * ratedKeys {
		r.take(strconv.Itoa(i), 1, noon)
		if wait := r.take("faithful", 1, noon); i > 0 && wait == 0 { // it is never among those that came last
			t.Fatalf("a tenant that keeps coming was forgotten after %d others", i)
		}
		n := len(r.young) + len(r.older)
		require.Truef(t, n <= 2*ratedKeys, "%d tenants are remembered", n)
	}
}

func TestConcurrentTakersGetNoMoreThanTheBurst(t *testing.T) {
	r := newRates("tenant", 0.001, 100)
	var all sync.WaitGroup
	var mu sync.Mutex
	got := 0
	for range 8 {
		all.Go(func() {
			for range 50 {
				for n := 7; n > 0; n-- { // also those that ask for too many
					if r.take("a", n, noon) == 0 {
						mu.Lock()
						got += n
						mu.Unlock()
					}
				}
			}
		})
	}
	all.Wait()
	assert.Equal(t, 100, got, "let through")
}

func TestRetryAfterIsWholeSecondsAndOneAtLeast(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "1", -time.Hour: "1", time.Nanosecond: "1", time.Second: "1", time.Second + 1: "2", time.Hour: "3600", math.MaxInt64: "9223372037",
	} {
		assert.Equal(t, want, seconds(d), d)
	}
}

func TestRates_Refund(t *testing.T) {
	r := newRates("credential", 0.5, 3)
	require.Equal(t, time.Duration(0), r.take("a", 2, noon), "it is refused")
	n, next := r.left("a", noon.Add(time.Second))
	assert.Truef(t, n == 1 && next.Round(time.Microsecond) == time.Second, "%d left, one more in %v", n, next)
	r.giveBack("a", 2, noon.Add(time.Second))
	n, _ = r.left("a", noon.Add(time.Second))
	assert.Equal(t, 3, n, "left")
	assert.Equal(t, time.Duration(0), r.take("a", 3, noon.Add(time.Second)), "wait")
}
