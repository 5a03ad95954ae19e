package apikey

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/workflow"
)

// Config configures a Verifier. Zero fields have the given defaults.
type Config struct {
	// Every is the interval of polls for rotated and revoked keys. Defaults to 500 ms.
	Every time.Duration
	// Survive is how long cached keys are accepted while the database is unavailable. Defaults to 1 minute.
	Survive time.Duration
	// Cache is the maximum number of cached keys. Defaults to 100,000. Evicted keys are looked up again, and their open streams end and
	// must be resumed.
	Cache int
	Log   *slog.Logger // defaults to slog.Default()
}

// Verifier verifies keys. It is safe for concurrent use.
type Verifier struct {
	*Table
	config Config
	cache  cache
	now    func() time.Time
	looked atomic.Int64 // last poll of the table, in nanoseconds since 1970; 0: never

	mu      sync.Mutex
	waiting map[string]*lookup // requests for the next poll, by id
	asked   chan struct{}      // one token: there are requests
	since   int64              // newest known revision, or -1; owned by the polling goroutine
	stats   Stats
	failure error // of the last poll

	running sync.WaitGroup
	ctx     context.Context // of polls, cancelled by Stop
	stop    context.CancelFunc
}

// lookup is a request for a key.
type lookup struct {
	done  chan struct{}
	found *entry // nil: unknown key; set before done is closed
	err   error  // set before done is closed
}

// NewVerifier returns a verifier for the keys of a table. Start it before use.
func NewVerifier(t *Table, c Config) *Verifier {
	c.Every = cmp.Or(c.Every, 500*time.Millisecond)
	c.Survive = cmp.Or(c.Survive, time.Minute)
	c.Cache = cmp.Or(c.Cache, 100_000)
	c.Log = cmp.Or(c.Log, slog.Default())
	v := &Verifier{Table: t, config: c, now: time.Now, waiting: map[string]*lookup{}, asked: make(chan struct{}, 1), since: -1,
		cache: cache{limit: c.Cache, entries: map[string]*entry{}, former: map[string]*entry{}}}
	v.ctx, v.stop = context.WithCancel(context.Background())
	return v
}

// Start starts to poll. Stop the verifier when done.
func (v *Verifier) Start() {
	v.running.Go(v.watch)
	v.running.Go(v.note)
}

// Stop ends polling and stores the last uses.
func (v *Verifier) Stop() {
	v.stop()
	v.running.Wait()
}

// Verify returns the principal of a text. Errors: Unauthorized caused by an [auth.Refusal]; Unavailable or TimedOut if the key is not
// cached and the database is unavailable.
func (v *Verifier) Verify(ctx context.Context, text string) (auth.Principal, error) {
	id, hash, err := parse(text)
	if err != nil {
		return auth.Principal{}, err
	}
	now := v.now()
	e, err := v.find(ctx, id, now)
	if err != nil {
		return auth.Principal{}, err
	}
	t := e.text(hash)
	switch {
	case t == nil:
		return auth.Principal{}, errUnknown
	case !e.key.RevokedAt.IsZero():
		return auth.Principal{}, errRevoked
	case t.ended == nil || !t.principal.Until.IsZero() && !now.Before(t.principal.Until):
		return auth.Principal{}, errExpired
	}
	if minute := now.Unix() / 60; e.used.Load() < minute {
		e.used.Store(minute)
	}
	return t.principal, nil
}

// Errors for rejected keys. They do not reveal whether an id exists to a caller without its text.
var (
	errUnknown = auth.Refuse(auth.UnknownKey, "unknown API key")
	errRevoked = auth.Refuse(auth.Revoked, "the API key was revoked")
	errExpired = auth.Refuse(auth.Expired, "the API key has expired, or its text was replaced")
)

// Good reports whether a key is valid now, for credentials that depend on it. ended is closed when the key is revoked. The key's expiry is
// not included, because dependent credentials have an expiry of their own. Errors: those of Verify.
func (v *Verifier) Good(ctx context.Context, id string) (ended <-chan struct{}, err error) {
	if !IsID(id) {
		return nil, errUnknown
	}
	now := v.now()
	e, err := v.find(ctx, id, now)
	switch {
	case err != nil:
		return nil, err
	case !e.key.RevokedAt.IsZero():
		return nil, errRevoked
	case !e.key.ExpiresAt.IsZero() && !now.Before(e.key.ExpiresAt):
		return nil, errExpired
	}
	return e.ended, nil
}

// Rotate calls [Table.Rotate]. When it returns, an expired former text is rejected here.
func (v *Verifier) Rotate(ctx context.Context, tenant, id string, r Rotation) (Key, string, error) {
	k, text, err := v.Table.Rotate(ctx, tenant, id, r)
	if err == nil {
		v.cache.renew(k)
	}
	return k, text, err
}

// Revoke calls [Table.Revoke]. When it returns, the key is rejected here.
func (v *Verifier) Revoke(ctx context.Context, tenant, id, by string) (Key, error) {
	k, err := v.Table.Revoke(ctx, tenant, id, by)
	if err == nil {
		v.cache.renew(k)
	}
	return k, err
}

var errUnavailable = workflow.Errorf(workflow.Unavailable, "the API keys cannot be looked up; try again later")

// Health reports whether keys can be looked up. The warning is "" if all is well; the error explains why no key is accepted. Both are safe
// to show to anyone.
func (v *Verifier) Health() (warning string, err error) {
	v.mu.Lock()
	failed := v.failure != nil
	v.mu.Unlock()
	switch {
	case !v.fresh(v.now()):
		return "", errUnavailable
	case failed:
		return "the API keys cannot be looked up; cached ones are used until " +
			time.Unix(0, v.looked.Load()).Add(v.config.Survive).UTC().Format(time.RFC3339), nil
	}
	return "", nil
}

// fresh reports whether cached keys may be used.
func (v *Verifier) fresh(now time.Time) bool {
	looked := v.looked.Load()
	return looked != 0 && now.UnixNano()-looked <= int64(v.config.Survive)
}

// Stats are counters of a Verifier.
type Stats struct {
	Known    int   // cached keys
	Lookups  int64 // keys that were looked up
	Looks    int64 // polls for lookups and changes
	Failures int64 // failed polls
}

// Stats returns the current counters.
func (v *Verifier) Stats() Stats {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.stats
	s.Known = v.cache.len()
	return s
}
