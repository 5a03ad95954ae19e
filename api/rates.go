package api

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/workflow"
)

// rates limits how many commands each tenant, or each actor of one, sends to this node.
//
// It remembers recent senders in two generations: when the younger one is full, it replaces the older one, whose senders are forgotten. A
// forgotten sender has a full burst again, so memory is bounded for any number of senders, at the price of a slightly higher rate for them.
type rates struct {
	whose     string // of a tenant or of a credential
	perSecond rate.Limit
	burst     int

	mu           sync.Mutex
	young, older map[string]*rate.Limiter
}

// ratedKeys is how many of them a generation has.
const ratedKeys = 4096

// newRates returns nil where there is no limit.
func newRates(whose string, perSecond float64, burst int) *rates {
	if perSecond == 0 {
		return nil
	}
	return &rates{whose: whose, perSecond: rate.Limit(perSecond), burst: burst, young: map[string]*rate.Limiter{}}
}

// take takes n commands out of a bucket, or says how long it will be
// until it has so many. n is at most the burst.
func (s *rates) take(key string, n int, now time.Time) (wait time.Duration) {
	s.mu.Lock() // the lock also covers the limiter: returned tokens must not be missing meanwhile
	defer s.mu.Unlock()
	taken := s.limiter(key).ReserveN(now, n)
	if wait = taken.DelayFrom(now); wait > 0 {
		taken.CancelAt(now)
	}
	return wait
}

// giveBack undoes a take.
func (s *rates) giveBack(key string, n int, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limiter(key).ReserveN(now, -n)
}

// left is how many may come now, and when there will be one more.
func (s *rates) left(key string, now time.Time) (n int, next time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	tokens := max(0, s.limiter(key).TokensAt(now))
	whole := math.Floor(tokens)
	return int(whole), time.Duration((whole + 1 - tokens) / float64(s.perSecond) * float64(time.Second))
}

func (s *rates) limiter(key string) *rate.Limiter {
	l := s.young[key]
	if l != nil {
		return l
	}
	if l = s.older[key]; l == nil {
		l = rate.NewLimiter(s.perSecond, s.burst)
	}
	if len(s.young) >= ratedKeys {
		s.young, s.older = map[string]*rate.Limiter{}, s.young
	}
	s.young[key] = l
	return l
}

// rated is one that a limit is for.
type rated struct {
	*rates
	key string
}

// actorKey is the key of a caller's rate: the actor of a tenant, whatever its credential is. An actor that may make API keys or request
// tickets gets no more by using several.
func actorKey(c *Caller) string { return c.Tenant + "\x00" + c.Actor }

// credential identifies the memory share of a caller's requests: the common part of all tokens that the caller gets, or the caller itself
// without a credential.
func credential(c *Caller) string {
	id := actorKey(c)
	switch c.Proof.Kind {
	case "", auth.Loopback:
		return id
	case auth.Ticket: // a ticket counts for its requester, and for each actor that the requester acts as
		return c.Proof.By + "\x00" + id
	}
	return c.Proof.String() + "\x00" + id
}

// admit refuses n commands beyond the rates of a tenant and an actor ("" for none), and reports the remaining commands in headers. Errors:
// RateLimited, with the header Retry-After; TooLarge for more commands than the burst.
func (a *API) admit(w http.ResponseWriter, tenant, actor string, n int) error {
	if n == 0 {
		return nil
	}
	var all []rated
	if a.tenants != nil {
		all = append(all, rated{a.tenants, tenant})
	}
	if a.credentials != nil && actor != "" {
		all = append(all, rated{a.credentials, actor})
	}
	for _, r := range all {
		if n > r.burst {
			return workflow.Errorf(workflow.TooLarge, "the request has more than the %d commands that a %s may send at once", r.burst, r.whose)
		}
	}
	now := time.Now()
	err := takeAll(w, all, n, now)
	for _, r := range all {
		window := time.Duration(float64(r.burst) / float64(r.perSecond) * float64(time.Second))
		w.Header().Add(headerRatePolicy, fmt.Sprintf(`"%s";q=%d;w=%s`, r.whose, r.burst, seconds(window)))
		left, next := r.left(r.key, now)
		w.Header().Add(headerRateLimit, fmt.Sprintf(`"%s";r=%d;t=%s`, r.whose, left, seconds(next)))
	}
	return err
}

// takeAll takes out of every bucket, or out of none.
func takeAll(w http.ResponseWriter, all []rated, n int, now time.Time) error {
	for i, r := range all {
		wait := r.take(r.key, n, now)
		if wait == 0 {
			continue
		}
		for _, taken := range all[:i] {
			taken.giveBack(taken.key, n, now)
		}
		w.Header().Set(headerRetryAfter, seconds(wait))
		return workflow.Errorf(workflow.RateLimited, "the %s sends more than %v commands a second", r.whose, float64(r.perSecond))
	}
	return nil
}

// The headers of draft-ietf-httpapi-ratelimit-headers-11: lists of structured fields.
const (
	headerRatePolicy = "RateLimit-Policy"
	headerRateLimit  = "RateLimit"
)

// seconds is a duration as Retry-After says it: whole seconds, at least one.
func seconds(d time.Duration) string {
	return strconv.FormatInt(max(1, int64(math.Ceil(d.Seconds()))), 10)
}
