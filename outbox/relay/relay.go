package relay

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/internal/kernel/loop"
	"github.com/pawlhq/pawl/workflow"
)

// Relay delivers events to the sinks whose leases this node holds. It is safe for concurrent use.
type Relay struct {
	config    Config
	in        func(sql string) string // inserts the schema's name
	polls     *loop.Loop
	nextHeads time.Time // earliest poll that may read the last positions of all logs
	lags      *lagFinder
	logs      atomic.Int64   // in memory
	work      sync.WaitGroup // the holders

	mu      sync.Mutex
	stats   Stats
	started bool
	ending  bool
	holders map[string]*holder // by sink
	idle    chan struct{}      // closed when there are no holders and none will start
}

// Stats are counters since the start, over all sinks that this node delivers to.
type Stats struct {
	Polls     int64 // of the state of the sinks
	Claimed   int64 // leases
	TakenOver int64 // of these, from nodes that had not released them
	Lost      int64 // leases that were taken over or could not be renewed
	Stored    int64 // batches of cursors, dead letters and leases
	Delivered int64 // events, as stored
	Failed    int64 // attempts
	Parked    int64 // events that became dead letters
}

// New validates the configuration. It does not access the database.
func New(c Config) (*Relay, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	r := &Relay{config: c, in: c.Events.In, polls: loop.New(), holders: map[string]*holder{}, idle: make(chan struct{})}
	r.lags = &lagFinder{relay: r, loop: loop.New()}
	return r, nil
}

// Start registers the sinks in the database and starts delivery. It is a no-op without sinks. ctx only bounds the start.
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
	r.polls.Start(r.poll, func(context.Context) {})
	r.lags.loop.Start(r.lags.run, func(context.Context) {})
	return nil
}

// register stores a sink and, if it is new, its initial cursors.
func (r *Relay) register(ctx context.Context, s *Sink) error {
	var cut int64
	err := pgx.BeginFunc(ctx, r.config.Pool, func(tx pgx.Tx) error {
		made, err := tx.Exec(ctx, r.in(registerSQL), s.Name, s.Tenants)
		switch {
		case err != nil:
		case made.RowsAffected() == 0:
			_, err = tx.Exec(ctx, r.in(restrictSQL), s.Name, s.Tenants)
		case s.FromNow:
			_, err = tx.Exec(ctx, r.in(fromNowSQL), s.Name)
		default:
			made, err = tx.Exec(ctx, r.in(fromOldestSQL), s.Name, s.Tenants)
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
	r.polls.Stop()
	r.lags.loop.Stop()
	r.work.Wait()
	r.close(ctx)
}

// close closes the sinks. It does not wait for a Close that hangs.
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
func (r *Relay) Wake() { r.polls.Wake() }

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

// Stats returns the counters.
func (r *Relay) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stats
}

func (r *Relay) count(update func(*Stats)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	update(&r.stats)
}

// held returns this node's holders by sink.
func (r *Relay) held() map[string]*holder {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.holders)
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
