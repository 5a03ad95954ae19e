package relay

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/internal/kernel/pause"
	"github.com/pawlhq/pawl/workflow"
)

const pollGap = 20 * time.Millisecond // minimum gap between two polls

// Relay delivers events to the sinks whose leases this node holds. It is safe for concurrent use.
type Relay struct {
	config    Config
	sql       statements
	stats     stats
	woken     chan struct{} // one token: poll now
	nextHeads time.Time     // earliest poll that may read the last positions of all logs
	lags      *lagFinder
	ctx       context.Context
	cancel    context.CancelFunc
	work      sync.WaitGroup // the poller, the finder and the holders

	mu      sync.Mutex
	started bool
	ending  bool
	holders map[string]*holder // by sink
	idle    chan struct{}      // closed when there are no holders and none will start
}

// New validates the configuration. It does not access the database.
func New(c Config) (*Relay, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	r := &Relay{config: c, sql: newStatements(c.Events.In), holders: map[string]*holder{},
		woken: make(chan struct{}, 1), idle: make(chan struct{})}
	r.lags = &lagFinder{relay: r, woken: make(chan struct{}, 1)}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r, nil
}

// Start registers the sinks in the database and starts delivery. It is a no-op without sinks. ctx
// only bounds the start.
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

// register stores a sink and, if it is new, its initial cursors.
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
		return &workflow.Error{Code: workflow.Unavailable, Message: "cannot register the sinks; try again", Cause: err}
	}
	if cut > 0 {
		r.config.Log.Warn("new sink starts with the oldest stored events; retention has removed earlier ones", "sink", s.Name, "tenants", cut)
	}
	return nil
}

// Stop finishes the deliveries in progress, stores the cursors, releases the leases and closes the
// sinks. If ctx ends first, it cancels the deliveries; their events are delivered again. It may be
// called twice.
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

// close closes the sinks. It does not wait for a Close that hangs, which may wait for a hanging
// call.
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
			select { // prefer a completed close
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

// checkIdle signals Stop after the last holder. The caller holds r.mu.
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

// Wake polls now, because another node released a sink or an operator made a change.
func (r *Relay) Wake() { poke(r.woken) }

// NoteHead records that a tenant's log has grown to head. It does not block.
func (r *Relay) NoteHead(tenant string, head int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range r.holders {
		if h.sink.serves(tenant) {
			h.signals.noteHead(tenant, head)
		}
	}
}

// pollLoop polls on wake-ups and at intervals.
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
			r.config.Log.Warn("cannot poll the state of the sinks", "error", err)
		}
		if !pause.For(r.ctx, pollGap) {
			return
		}
		timer.Reset(r.config.Every - pollGap)
	}
}

// startHolder starts to deliver to a sink whose lease this node has claimed.
func (r *Relay) startHolder(s *Sink, token, revision int64, until time.Time) {
	h := newHolder(r, s, token, revision, until)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.holders[s.Name] = h
	if r.ending { // release the lease at once
		h.signals.send(func(s *signals) { s.drain = true })
	}
	r.work.Go(func() {
		h.run()
		r.mu.Lock()
		delete(r.holders, s.Name)
		r.checkIdle()
		r.mu.Unlock()
		if h.lease.released && r.config.Peers != nil {
			r.config.Peers.Sinks()
		}
		r.Wake() // claim it again unless it is paused
	})
}
