package relay

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/internal/kernel/pause"
	"github.com/pawlhq/pawl/workflow"
)

const pollGap = 20 * time.Millisecond // between two polls, at least

// Relay delivers to the sinks of a node, as far as no other node does. It is safe
// for concurrent use.
type Relay struct {
	config    Config
	sql       statements
	stats     stats
	woken     chan struct{} // one token: poll now
	nextHeads time.Time     // the next poll may ask for the heads of all logs then
	lags      *lagFinder
	ctx       context.Context
	cancel    context.CancelFunc
	work      sync.WaitGroup // the poller, the finder and the holders

	mu      sync.Mutex
	started bool
	ending  bool
	holders map[string]*holder // by sink
	idle    chan struct{}      // closed when there are none, and there will be none
}

// New checks the configuration. It does not touch the database.
func New(c Config) (*Relay, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	r := &Relay{config: c, sql: newStatements(c.Events.In), holders: map[string]*holder{},
		woken: make(chan struct{}, 1), idle: make(chan struct{})}
	r.lags = newLagFinder(r)
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r, nil
}

// Start makes the sinks known to the database and begins to deliver. Without
// sinks it does nothing. ctx bounds only the start.
//
// Errors: Unavailable.
func (r *Relay) Start(ctx context.Context) error {
	for i := range r.config.Sinks {
		if err := r.register(ctx, &r.config.Sinks[i]); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.started || r.ending || len(r.config.Sinks) == 0 {
		return nil
	}
	r.started = true
	r.work.Go(r.pollLoop)
	r.work.Go(r.lags.run)
	return nil
}

// register makes a sink known to the database, with the cursors that it begins at if it
// is new.
func (r *Relay) register(ctx context.Context, s *Sink) error {
	var cut int64
	err := pgx.BeginFunc(ctx, r.config.Pool, func(tx pgx.Tx) error {
		made, err := tx.Exec(ctx, r.sql.register, s.Name, s.Tenants)
		switch {
		case err != nil:
		case made.RowsAffected() == 0:
			_, err = tx.Exec(ctx, r.sql.restrict, s.Name, s.Tenants)
		case s.FromNow:
			_, err = tx.Exec(ctx, r.sql.fromNow, s.Name)
		default:
			made, err = tx.Exec(ctx, r.sql.fromOldest, s.Name, s.Tenants)
			cut = made.RowsAffected()
		}
		return err
	})
	if err != nil {
		return &workflow.Error{Code: workflow.Unavailable, Message: "the sinks could not be registered; try again", Cause: err}
	}
	if cut > 0 {
		r.config.Log.Warn("a new sink does not get the events that retention has removed; it begins with the oldest that are there",
			"sink", s.Name, "tenants", cut)
	}
	return nil
}

// Stop lets the deliveries that are under way come to their end, stores how far the
// sinks are, gives their leases back, and closes them. When ctx ends first it breaks
// the deliveries off; their events are delivered again. It may be called twice.
func (r *Relay) Stop(ctx context.Context) {
	r.mu.Lock()
	r.ending = true
	r.checkIdle()
	for _, h := range r.holders {
		h.signals.send(func(s *signals) { s.drain = true })
	}
	r.mu.Unlock()
	select {
	case <-r.idle:
	case <-ctx.Done():
		for _, h := range r.held() {
			h.signals.send(func(s *signals) { s.stop = true })
		}
		<-r.idle
	}
	r.cancel()
	r.work.Wait()
	r.close(ctx)
}

// close closes the sinks. One whose Close does not return is left alone: it may wait
// for a call that never ends.
func (r *Relay) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopGrace)
	defer cancel()
	closed := make([]chan error, len(r.config.Sinks))
	for i := range closed {
		closed[i] = make(chan error, 1)
		go func() { closed[i] <- r.config.Sinks[i].To.Close(ctx) }()
	}
	for i := range closed {
		var err error
		select {
		case err = <-closed[i]:
		case <-ctx.Done():
			select { // it may have closed long ago
			case err = <-closed[i]:
			default:
				err = ctx.Err()
			}
		}
		if err != nil {
			r.config.Log.Warn("cannot close a sink", "sink", r.config.Sinks[i].Name, "error", err)
		}
	}
}

// checkIdle tells Stop when no holder is left. r.mu is held.
func (r *Relay) checkIdle() {
	if !r.ending || len(r.holders) > 0 {
		return
	}
	select {
	case <-r.idle:
	default:
		close(r.idle)
	}
}

// Wake makes the relay poll now: another node has given a sink back, or an operator has
// changed something.
func (r *Relay) Wake() { poke(r.woken) }

// NoteHead takes in that a tenant's log has grown to head, as a commit or a hint says.
// It does not block.
func (r *Relay) NoteHead(tenant string, head int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range r.holders {
		if h.sink.serves(tenant) {
			h.signals.noteHead(tenant, head)
		}
	}
}

// pollLoop polls how the sinks stand: when there is reason to, and regularly.
func (r *Relay) pollLoop() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-r.woken:
		case <-r.ctx.Done():
			return
		}
		if err := r.poll(r.ctx); err != nil && r.ctx.Err() == nil {
			r.config.Log.Warn("cannot poll how the sinks stand", "error", err)
		}
		if !pause.For(r.ctx, pollGap) {
			return
		}
		timer.Reset(r.config.Every - pollGap)
	}
}

// startHolder begins to deliver to a sink whose lease this node has got.
func (r *Relay) startHolder(s *Sink, token, revision int64, until time.Time) {
	h := newHolder(r, s, token, revision, until)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.holders[s.Name] = h
	if r.ending { // nothing is begun, and the lease is given back
		h.signals.send(func(s *signals) { s.drain = true })
	}
	r.work.Go(func() {
		h.run()
		r.holderEnded(h)
	})
}

// holderEnded takes in that this node no longer delivers to a sink.
func (r *Relay) holderEnded(h *holder) {
	r.mu.Lock()
	delete(r.holders, h.sink.Name)
	r.checkIdle()
	r.mu.Unlock()
	if h.lease.released && r.config.Peers != nil {
		r.config.Peers.Sinks()
	}
	r.Wake() // to take it again, unless it is paused
}
