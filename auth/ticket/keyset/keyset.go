// Package keyset stores the keys that sign tickets in the table ticket_key, and caches them on each node.
//
// A key signs for a day and verifies for one hour more, the maximum lifetime of a ticket. The first node that needs a signing key creates
// one; creating and removing keys locks the table, so that concurrent nodes create one key.
//
// A node does not read the table until it handles a ticket. Then it polls the table every few seconds. An unknown key id causes an
// immediate read, at most once per second.
package keyset

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
	// Verifies is how long a key verifies: until the last ticket it signed expires.
	Verifies = Signs + ticket.Longest

	// survive is how long keys are used while the table cannot be read.
	survive = time.Minute

	forever = 100 * 365 * 24 * time.Hour
)

// Config configures a Set. Pool is required; other zero fields have the given defaults.
type Config struct {
	Pool *pgxpool.Pool
	In   func(sql string) string // inserts the schema's name into a statement
	Log  *slog.Logger            // defaults to slog.Default()

	Every    time.Duration // poll interval; defaults to 5 seconds
	Unsure   time.Duration // minimum interval of reads caused by unknown ids; defaults to 1 second
	Patience time.Duration // timeout of reads and writes; defaults to 5 seconds
}

// Set caches the keys. It is safe for concurrent use.
type Set struct {
	config Config
	clock  *clock.Clock
	known  atomic.Pointer[known]

	mu     sync.Mutex // held while reading or writing the table
	asked  time.Time  // last read caused by an unknown id
	failed time.Time  // last failure
	reads  atomic.Int64

	once    sync.Once
	ctx     context.Context // of the polling goroutine
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// known is the result of a read.
type known struct {
	keys []*key // newest first
	at   time.Time
}

type key struct {
	ticket.Key
	created time.Time
	gone    chan struct{}
}

// New returns a key set without reading it. Stop it when done.
func New(c Config) *Set {
	c.Log = cmp.Or(c.Log, slog.Default())
	c.Every, c.Unsure = cmp.Or(c.Every, 5*time.Second), cmp.Or(c.Unsure, time.Second)
	c.Patience = cmp.Or(c.Patience, 5*time.Second)
	r := &Set{config: c, clock: clock.New(nil)}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// Stop ends polling and waits for it.
func (r *Set) Stop() {
	r.once.Do(func() {}) // prevents a later start
	r.cancel()
	r.running.Wait()
}

// Now returns the database's time.
func (r *Set) Now() time.Time { return r.clock.Now() }

// Reads returns the number of reads of the table, including failed ones.
func (r *Set) Reads() int64 { return r.reads.Load() }

// Newest returns the signing key, which it creates if necessary. Error: Unavailable.
func (r *Set) Newest(ctx context.Context) (*ticket.Key, error) {
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
		return nil, unavailable(errors.New("the new key is missing"))
	}
	return &k.Key, nil
}

// signing returns the cached signing key, or nil.
func (r *Set) signing() *key {
	if now := r.fresh(); now != nil && len(now.keys) > 0 && r.Now().Sub(now.keys[0].created) < Signs {
		return now.keys[0]
	}
	return nil
}

// fresh returns the cached keys unless they are too old.
func (r *Set) fresh() *known {
	if now := r.known.Load(); now != nil && time.Since(now.at) < survive {
		return now
	}
	return nil
}

// Find returns the key with an id if it may still verify, or nil. Error: Unavailable.
func (r *Set) Find(ctx context.Context, id string) (*ticket.Key, error) {
	if u, err := uuid.Parse(id); err != nil || u.String() != id {
		return nil, nil // not a valid id
	}
	if k := r.find(id); k != nil {
		return &k.Key, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if k := r.find(id); k != nil { // another caller has read it
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

// Holds reports whether the database has the key with an id, of any age. Unlike Find it always reads the table. Error: Unavailable.
func (r *Set) Holds(ctx context.Context, id string) (there bool, err error) {
	u, err := uuid.Parse(id)
	if err != nil {
		return false, nil // not a valid id
	}
	if err := r.config.Pool.QueryRow(ctx, r.config.In(holdsSQL), u).Scan(&there); err != nil {
		return false, unavailable(err)
	}
	return there, nil
}

// find returns the cached key with an id if it may verify, or nil.
func (r *Set) find(id string) *key {
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

// try reads or writes the keys for a caller, which may stop waiting. Callers that waited for a failed attempt get its error instead of
// trying again one by one. Error: Unavailable.
func (r *Set) try(ctx context.Context, do func(context.Context) error) error {
	if time.Since(r.failed) < r.config.Unsure {
		return unavailable(nil)
	}
	if err := do(context.WithoutCancel(ctx)); err != nil {
		r.failed = time.Now()
		return unavailable(err)
	}
	return nil
}

// Rotate creates a new signing key. With drop it removes all others, which invalidates their tickets; otherwise these remain valid until
// they expire. Other nodes notice within seconds.
func (r *Set) Rotate(ctx context.Context, drop bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	keep := Verifies
	if drop {
		keep = -forever // removes all, even if the database's clock was set back
	}
	return r.change(ctx, 0, keep)
}

// change removes keys of age keep or older, creates one unless one is younger than young, and reads the keys.
func (r *Set) change(ctx context.Context, young, keep time.Duration) error {
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

// read reads the keys and removes expired ones. The caller holds r.mu.
func (r *Set) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.config.Patience)
	defer cancel()
	sent := time.Now()
	r.reads.Add(1)
	rows, err := r.config.Pool.Query(ctx, r.config.In(readSQL))
	if err != nil {
		return err
	}
	var theirs time.Time
	var found []*key // newest first
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
	r.replace(good, sent)
	r.once.Do(func() {
		r.running.Go(func() {
			tick := time.NewTicker(r.config.Every)
			defer tick.Stop()
			for {
				select {
				case <-tick.C:
					r.poll()
				case <-r.ctx.Done():
					return
				}
			}
		})
	})
	if len(good) == len(found) {
		return nil
	}
	_, err = r.config.Pool.Exec(ctx, r.config.In(sweepSQL), Verifies)
	return err
}

// replace replaces the cached keys. It keeps the identity of existing keys and closes the channels of removed ones.
func (r *Set) replace(found []*key, at time.Time) {
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

func (r *Set) poll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.read(r.ctx); err != nil && r.ctx.Err() == nil {
		r.config.Log.Debug("tickets: the keys could not be read", "error", err)
	}
}

func unavailable(cause error) error {
	return &workflow.Error{Code: workflow.Unavailable, Message: "the keys of tickets cannot be read now", Cause: cause}
}

const (
	// readSQL returns a row without a key if there are no keys.
	readSQL = `SELECT now.at, k.id, k.secret, k.created_at FROM (SELECT clock_timestamp() AS at) AS now
		LEFT JOIN {pawl}.ticket_key AS k ON true ORDER BY k.created_at DESC, k.id`

	holdsSQL = `SELECT EXISTS (SELECT FROM {pawl}.ticket_key WHERE id = $1)`

	// boundSQL bounds how long a crashed node can hold the lock.
	boundSQL = `SELECT set_config('idle_in_transaction_session_timeout', '10s', true)`

	// lockSQL waits for concurrent changes, but does not block reads.
	lockSQL = `LOCK TABLE {pawl}.ticket_key IN SHARE ROW EXCLUSIVE MODE`

	// makeSQL creates a key unless one is younger than $1.
	makeSQL = `INSERT INTO {pawl}.ticket_key SELECT WHERE NOT EXISTS (
		SELECT FROM {pawl}.ticket_key AS k WHERE k.created_at > clock_timestamp() - $1::interval)`

	// sweepSQL removes keys of age $1 or older.
	sweepSQL = `DELETE FROM {pawl}.ticket_key AS k WHERE k.created_at <= clock_timestamp() - $1::interval`
)
