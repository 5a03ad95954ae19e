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

// Config says how keys are taken. Every zero field has the default that stands beside it.
type Config struct {
	// Every is the time between two looks for keys that were rotated or revoked; 500 milliseconds.
	Every time.Duration
	// Survive is for how long keys that are remembered are taken while the database cannot be asked; one minute.
	Survive time.Duration
	// Cache is how many keys are remembered; 100,000. With more of them in use some are looked up again, and what is open with
	// those ends, to be resumed.
	Cache int
	Log   *slog.Logger // slog.Default()
}

// Verifier takes keys. It is safe for concurrent use.
type Verifier struct {
	*Table
	config Config
	cache  cache
	now    func() time.Time
	looked atomic.Int64 // when the table was last read, in nanoseconds since 1970; 0: never

	mu      sync.Mutex
	waiting map[string]*look // by id: what the next look is to find
	asked   chan struct{}    // has one where somebody waits
	since   int64            // the newest revision that is known, -1 for none. It is the looking goroutine's
	stats   Stats
	failure error // of the last look

	running sync.WaitGroup
	ctx     context.Context // of the looks, ended by Stop
	stop    context.CancelFunc
}

// look is a look for a key.
type look struct {
	done  chan struct{}
	found *entry // nil: there is none. It is set before done is closed
	err   error  // likewise
}

// NewVerifier makes a verifier of the keys of a table. Start it before it is asked.
func NewVerifier(t *Table, c Config) *Verifier {
	c.Every = cmp.Or(c.Every, 500*time.Millisecond)
	c.Survive = cmp.Or(c.Survive, time.Minute)
	c.Cache = cmp.Or(c.Cache, 100_000)
	c.Log = cmp.Or(c.Log, slog.Default())
	v := &Verifier{Table: t, config: c, cache: newCache(c.Cache), now: time.Now,
		waiting: map[string]*look{}, asked: make(chan struct{}, 1), since: -1}
	v.ctx, v.stop = context.WithCancel(context.Background())
	return v
}

// Start begins to look for what changes. Stop when done.
func (v *Verifier) Start() {
	v.running.Go(v.watch)
	v.running.Go(v.note)
}

// Stop returns when nothing is looked for any more, and the last uses are noted.
func (v *Verifier) Stop() {
	v.stop()
	v.running.Wait()
}

// Verify says who has a text. Errors: Unauthorized with an [auth.Refusal] as its cause; Unavailable or TimedOut where the
// database would have to be asked, and cannot be.
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

// What a key is refused with. Whether there is one with an id is told to nobody who has not its text.
var (
	errUnknown = auth.Refuse(auth.UnknownKey, "the API key is not known")
	errRevoked = auth.Refuse(auth.Revoked, "the API key was revoked")
	errExpired = auth.Refuse(auth.Expired, "the API key has ended, or its text was replaced")
)

// Good says whether a key can be used now, for what else is good only as long as the key is. ended is closed when it is revoked.
// Its expiry is no part of that; who vouches with a key has its end, too. Errors: those of Verify.
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

// Rotate is that of the table. The former text has ended here, where it was to, when it returns.
func (v *Verifier) Rotate(ctx context.Context, tenant, id string, r Rotation) (Key, string, error) {
	k, text, err := v.Table.Rotate(ctx, tenant, id, r)
	if err == nil {
		v.cache.renew(k)
	}
	return k, text, err
}

// Revoke is that of the table. The key is refused here when it returns.
func (v *Verifier) Revoke(ctx context.Context, tenant, id, by string) (Key, error) {
	k, err := v.Table.Revoke(ctx, tenant, id, by)
	if err == nil {
		v.cache.renew(k)
	}
	return k, err
}

var errUnavailable = workflow.Errorf(workflow.Unavailable, "the API keys cannot be looked up; try again later")

// Health is how the keys can be looked up. The warning is "" where all is well, and an error is why no key can be
// taken. Both are safe to tell anybody.
func (v *Verifier) Health() (warning string, err error) {
	v.mu.Lock()
	failed := v.failure != nil
	v.mu.Unlock()
	switch {
	case !v.fresh(v.now()):
		return "", errUnavailable
	case failed:
		return "the API keys could not be looked up; those that are known are used until " +
			time.Unix(0, v.looked.Load()).Add(v.config.Survive).UTC().Format(time.RFC3339), nil
	}
	return "", nil
}

// fresh reports whether what is remembered can be used.
func (v *Verifier) fresh(now time.Time) bool {
	looked := v.looked.Load()
	return looked != 0 && now.UnixNano()-looked <= int64(v.config.Survive)
}

// Stats count what was done.
type Stats struct {
	Known    int   // keys that are remembered
	Lookups  int64 // keys that were looked up
	Looks    int64 // at the table, for those and for what has changed
	Failures int64 // of those
}

// Stats returns them as they are now.
func (v *Verifier) Stats() Stats {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.stats
	s.Known = v.cache.len()
	return s
}
