package api

import (
	"math"
	"strconv"
	"sync"
	"testing"
	"time"
)

func TestATenantGetsItsBurstAndThenItsRate(t *testing.T) {
	r := newRates("tenant", 2, 10)
	take := func(tenant string, n int, at time.Duration, want time.Duration) {
		t.Helper()
		if got := r.take(tenant, n, noon.Add(at)); got.Round(time.Microsecond) != want {
			t.Errorf("%d at %v: wait %v, want %v", n, at, got, want)
		}
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
		if n := len(r.young) + len(r.older); n > 2*ratedKeys {
			t.Fatalf("%d tenants are remembered", n)
		}
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
	if got != 100 {
		t.Errorf("%d were let through", got)
	}
}

func TestRetryAfterIsWholeSecondsAndOneAtLeast(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "1", -time.Hour: "1", time.Nanosecond: "1", time.Second: "1", time.Second + 1: "2", time.Hour: "3600", math.MaxInt64: "9223372037",
	} {
		if got := seconds(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}

func TestWhatIsGivenBackCanBeTakenAgain(t *testing.T) {
	r := newRates("credential", 0.5, 3)
	if r.take("a", 2, noon) != 0 {
		t.Fatal("it is refused")
	}
	if n, next := r.left("a", noon.Add(time.Second)); n != 1 || next.Round(time.Microsecond) != time.Second {
		t.Errorf("%d left, one more in %v", n, next)
	}
	r.giveBack("a", 2, noon.Add(time.Second))
	if n, _ := r.left("a", noon.Add(time.Second)); n != 3 {
		t.Errorf("%d left", n)
	}
	if wait := r.take("a", 3, noon.Add(time.Second)); wait != 0 {
		t.Errorf("wait %v", wait)
	}
}
