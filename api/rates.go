package api

import (
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/pawlhq/pawl/workflow"
)

// rates bounds how many commands each tenant sends to this node.
//
// It remembers the tenants that came last, in two generations: when the younger
// one is full, it becomes the older one, and what was in that is forgotten. Who
// is forgotten has a full burst again, so that memory stays bounded however many
// tenants there are, at the price of a little more than the rate for them.
type rates struct {
	perSecond rate.Limit
	burst     int

	mu           sync.Mutex
	young, older map[string]*rate.Limiter
}

// ratedTenants is how many tenants a generation has.
const ratedTenants = 4096

// newRates returns nil where there is no limit.
func newRates(l Limits) *rates {
	if l.Rate == 0 {
		return nil
	}
	return &rates{perSecond: rate.Limit(l.Rate), burst: l.Burst, young: map[string]*rate.Limiter{}}
}

// take takes n commands out of the tenant's bucket, or says how long it will be
// until it has so many. n is at most the burst.
func (s *rates) take(tenant string, n int, now time.Time) (wait time.Duration) {
	s.mu.Lock() // also around the limiter: what is given back must not have been missing meanwhile
	defer s.mu.Unlock()
	taken := s.limiter(tenant).ReserveN(now, n)
	if wait = taken.DelayFrom(now); wait > 0 {
		taken.CancelAt(now)
	}
	return wait
}

func (s *rates) limiter(tenant string) *rate.Limiter {
	l := s.young[tenant]
	if l != nil {
		return l
	}
	if l = s.older[tenant]; l == nil {
		l = rate.NewLimiter(s.perSecond, s.burst)
	}
	if len(s.young) >= ratedTenants {
		s.young, s.older = map[string]*rate.Limiter{}, s.young
	}
	s.young[tenant] = l
	return l
}

// admit refuses n commands of a tenant that sends too many. Errors: RateLimited,
// with the header Retry-After set; TooLarge for more than can ever come at once.
func (a *API) admit(w http.ResponseWriter, tenant string, n int) error {
	if a.rates == nil || n == 0 {
		return nil
	}
	if n > a.rates.burst {
		return workflow.Errorf(workflow.TooLarge, "the request has more than the %d commands that a tenant may send at once", a.rates.burst)
	}
	wait := a.rates.take(tenant, n, time.Now())
	if wait == 0 {
		return nil
	}
	w.Header().Set(headerRetryAfter, seconds(wait))
	return workflow.Errorf(workflow.RateLimited, "the tenant sends more than %v commands a second", a.cfg.Limits.Rate)
}

// seconds is a duration as Retry-After says it: whole seconds, at least one.
func seconds(d time.Duration) string {
	return strconv.FormatInt(max(1, int64(math.Ceil(d.Seconds()))), 10)
}
