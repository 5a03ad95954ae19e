package ring

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/auth/ticket"
	"github.com/pawlhq/pawl/internal/kernel/clock"
	"github.com/pawlhq/pawl/workflow"
)

const (
	// Signs is how long a key signs.
	Signs = 24 * time.Hour
	// Verifies is how long it verifies: until the last ticket ends that it has signed.
	Verifies = Signs + ticket.Longest

	// survive is how long keys are used that cannot be read again.
	survive = time.Minute

	forever = 100 * 365 * 24 * time.Hour
)

// Config is what a Ring needs. Pool is required; every other zero field has the default that stands beside it.
type Config struct {
	Pool *pgxpool.Pool
	In   func(sql string) string // puts the schema's name into a statement
	Log  *slog.Logger            // slog.Default()

	Every    time.Duration // how often the keys are read, once they are in use; 5 seconds
	Unsure   time.Duration // how often at most because of an id that is not known; a second
	Patience time.Duration // how long reading or writing them may take; 5 seconds
}

// Ring is the keys. It is safe for concurrent use.
type Ring struct {
	config Config
	clock  *clock.Clock
	known  atomic.Pointer[known]

	mu     sync.Mutex // of who reads or writes the table
	asked  time.Time  // when the table was read last because of an id that is not known
	failed time.Time  // when it could not be read or written
	reads  atomic.Int64

	once    sync.Once
	ctx     context.Context // of the goroutine that reads again and again
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// known is what was read.
type known struct {
	keys []*key // the newest first
	at   time.Time
}

type key struct {
	ticket.Key
	created time.Time
	gone    chan struct{}
}

// New makes it. It reads nothing. Stop when done.
func New(c Config) *Ring {
	c.Log = cmp.Or(c.Log, slog.Default())
	c.Every, c.Unsure = cmp.Or(c.Every, 5*time.Second), cmp.Or(c.Unsure, time.Second)
	c.Patience = cmp.Or(c.Patience, 5*time.Second)
	r := &Ring{config: c, clock: clock.New(nil)}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// Stop returns when nothing is read any more.
func (r *Ring) Stop() {
	r.once.Do(func() {}) // nobody begins now
	r.cancel()
	r.running.Wait()
}

// Now is the database's time.
func (r *Ring) Now() time.Time { return r.clock.Now() }

// Reads counts how often the table was read, or could not be.
func (r *Ring) Reads() int64 { return r.reads.Load() }

// Newest returns the key that signs now; it makes one where there is none. Error: Unavailable.
func (r *Ring) Newest(ctx context.Context) (*ticket.Key, error) {
	if k := r.signing(); k != nil {
		return &k.Key, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	makeOne := func(ctx context.Context) error { return r.change(ctx, Signs, Verifies) }
	for _, step := range []func(context.Context) error{r.read, makeOne} {
		if k := r.signing(); k != nil {
			return &k.Key, nil
		}
		if err := r.try(ctx, step); err != nil {
			return nil, err
		}
	}
	k := r.signing()
	if k == nil {
		return nil, unavailable(errors.New("the key that was made is not there"))
	}
	return &k.Key, nil
}

// signing is the key that signs, if it is known; nil for none.
func (r *Ring) signing() *key {
	if now := r.fresh(); now != nil && len(now.keys) > 0 && r.Now().Sub(now.keys[0].created) < Signs {
		return now.keys[0]
	}
	return nil
}

// fresh is what is known, unless that is too long ago.
func (r *Ring) fresh() *known {
	if now := r.known.Load(); now != nil && time.Since(now.at) < survive {
		return now
	}
	return nil
}

// Find returns the key with an id, if it may still verify; nil for none. Error: Unavailable.
func (r *Ring) Find(ctx context.Context, id string) (*ticket.Key, error) {
	if u, err := uuid.Parse(id); err != nil || u.String() != id {
		return nil, nil // none of ours
	}
	if k := r.find(id); k != nil {
		return &k.Key, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if k := r.find(id); k != nil { // somebody else has read it
		return &k.Key, nil
	}
	if time.Since(r.asked) >= r.config.Unsure {
		r.asked = time.Now()
		if err := r.try(ctx, r.read); err != nil {
			return nil, err
		}
	}
	if r.fresh() == nil {
		return nil, unavailable(nil)
	}
	if k := r.find(id); k != nil {
		return &k.Key, nil
	}
	return nil, nil
}

// Holds reports whether the database has the key with an id, whatever its age. Unlike Find it reads the table. Error: Unavailable.
func (r *Ring) Holds(ctx context.Context, id string) (there bool, err error) {
	u, err := uuid.Parse(id)
	if err != nil {
		return false, nil // none of ours
	}
	if err := r.config.Pool.QueryRow(ctx, r.config.In(holdsSQL), u).Scan(&there); err != nil {
		return false, unavailable(err)
	}
	return there, nil
}

// find is the key with an id, if it is known and may verify; nil for none.
func (r *Ring) find(id string) *key {
	now := r.fresh()
	if now == nil {
		return nil
	}
	for _, k := range now.keys {
		if k.ID == id && r.Now().Sub(k.created) < Verifies {
			return k
		}
	}
	return nil
}

// try reads or writes the keys for a caller, who may leave meanwhile. When that has just failed it does again without trying: those
// who have waited for it do not wait for each other. Error: Unavailable.
func (r *Ring) try(ctx context.Context, do func(context.Context) error) error {
	if time.Since(r.failed) < r.config.Unsure {
		return unavailable(nil)
	}
	if err := do(context.WithoutCancel(ctx)); err != nil {
		r.failed = time.Now()
		return unavailable(err)
	}
	return nil
}

// Rotate makes a key that signs from now on. With drop, all others are removed, and with them every ticket ends that they have
// signed; else those end in their time. Other nodes notice within seconds.
func (r *Ring) Rotate(ctx context.Context, drop bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	keep := Verifies
	if drop {
		keep = -forever // none, also where the database's clock was put back
	}
	return r.change(ctx, 0, keep)
}

// change removes keys that are not younger than keep, makes one unless there is one younger than that, and reads them.
func (r *Ring) change(ctx context.Context, young, keep time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, r.config.Patience)
	defer cancel()
	err := pgx.BeginFunc(ctx, r.config.Pool, func(tx pgx.Tx) error {
		for _, s := range []struct {
			sql  string
			args []any
		}{{boundSQL, nil}, {lockSQL, nil}, {sweepSQL, []any{keep}}, {makeSQL, []any{young}}} {
			if _, err := tx.Exec(ctx, r.config.In(s.sql), s.args...); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return r.read(ctx)
}

// read reads the keys, and removes those whose time is over. r.mu is held.
func (r *Ring) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.config.Patience)
	defer cancel()
	sent := time.Now()
	r.reads.Add(1)
	rows, err := r.config.Pool.Query(ctx, r.config.In(readSQL))
	if err != nil {
		return err
	}
	var theirs time.Time
	var found []*key // the newest first
	var id *uuid.UUID
	var secret []byte
	var created *time.Time
	if _, err := pgx.ForEachRow(rows, []any{&theirs, &id, &secret, &created}, func() error {
		if id != nil {
			found = append(found, &key{Key: ticket.Key{ID: id.String(), Secret: secret}, created: *created})
		}
		secret = nil
		return nil
	}); err != nil {
		return err
	}
	r.clock.Set(theirs, sent, time.Now())
	good := slices.DeleteFunc(slices.Clone(found), func(k *key) bool { return theirs.Sub(k.created) >= Verifies })
	r.take(good, sent)
	r.follow()
	if len(good) == len(found) {
		return nil
	}
	_, err = r.config.Pool.Exec(ctx, r.config.In(sweepSQL), Verifies)
	return err
}

// take replaces what is known. A key that is there again stays the same one; who waits for one that is gone is told.
func (r *Ring) take(found []*key, at time.Time) {
	old := map[string]*key{}
	if before := r.known.Load(); before != nil {
		for _, k := range before.keys {
			old[k.ID] = k
		}
	}
	for i, k := range found {
		if same := old[k.ID]; same != nil {
			found[i] = same
			delete(old, k.ID)
			continue
		}
		k.gone = make(chan struct{})
		k.Gone = k.gone
	}
	r.known.Store(&known{keys: found, at: at})
	for _, k := range old {
		close(k.gone)
	}
}

// follow begins to read again and again.
func (r *Ring) follow() {
	r.once.Do(func() {
		r.running.Go(func() {
			tick := time.NewTicker(r.config.Every)
			defer tick.Stop()
			for {
				select {
				case <-tick.C:
					r.again()
				case <-r.ctx.Done():
					return
				}
			}
		})
	})
}

func (r *Ring) again() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.read(r.ctx); err != nil && r.ctx.Err() == nil {
		r.config.Log.Debug("tickets: the keys could not be read", "error", err)
	}
}

func unavailable(cause error) error {
	return &workflow.Error{Code: workflow.Unavailable, Message: "the keys of tickets cannot be read now", Cause: cause}
}
