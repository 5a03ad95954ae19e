package relay

import (
	"context"
	"sync"
	"time"

	"github.com/pawlhq/pawl/internal/pause"
	"github.com/pawlhq/pawl/outbox"
)

const lookGap = 20 * time.Millisecond // between two looks, at least

// Relay delivers to the sinks of a node, as far as no other node does. It is safe
// for concurrent use.
type Relay struct {
	config   Config
	sql      statements
	log      *outbox.Table
	stats    stats
	woken    chan struct{} // one token: look now
	readNext time.Time     // the next look may ask for all tenants then
	looks    context.Context
	endLook  context.CancelFunc
	work     sync.WaitGroup // who looks, and the tenures

	mu      sync.Mutex
	started bool
	ending  bool
	tenures map[string]*tenure // by sink
	idle    chan struct{}      // closed when there are none, and there will be none
}

// New checks the configuration. It does not touch the database.
func New(c Config) (*Relay, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	r := &Relay{config: c, sql: newStatements(c.In), log: outbox.New(c.Pool, c.In, c.Source), woken: make(chan struct{}, 1), tenures: map[string]*tenure{}, idle: make(chan struct{})}
	r.looks, r.endLook = context.WithCancel(context.Background())
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
	r.work.Go(r.watch)
	return nil
}

// Stop lets the deliveries that are under way come to their end, stores how far
// the sinks are, gives them to other nodes, and closes them. When ctx ends first
// it breaks the deliveries off; their events are delivered again. It may be
// called twice.
func (r *Relay) Stop(ctx context.Context) {
	r.mu.Lock()
	r.ending = true
	r.checkIdle()
	list := make([]*tenure, 0, len(r.tenures))
	for _, t := range r.tenures {
		list = append(list, t)
	}
	r.mu.Unlock()
	for _, t := range list {
		t.hear(func(n *tidings) { n.drain = true })
	}
	select {
	case <-r.idle:
	case <-ctx.Done():
		for _, t := range list {
			t.stop()
		}
		<-r.idle
	}
	r.endLook()
	r.work.Wait()
	r.close(ctx)
}

// close closes the sinks. One that does not come back is left alone: a call may
// never have ended, and Close wait for it.
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

// checkIdle tells Stop when no tenure is left. r.mu is held.
func (r *Relay) checkIdle() {
	if !r.ending || len(r.tenures) > 0 {
		return
	}
	select {
	case <-r.idle:
	default:
		close(r.idle)
	}
}

// Wake looks how the sinks stand now: another node has given some back, or an
// operation has changed something.
func (r *Relay) Wake() { poke(r.woken) }

// Heard takes notice that a tenant's log has grown to head, as somebody says. It
// does not block.
func (r *Relay) Heard(tenant string, head int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.tenures {
		t.heard(tenant, head)
	}
}

// watch looks how the sinks stand: when there is reason to, and regularly.
func (r *Relay) watch() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-r.woken:
		case <-r.looks.Done():
			return
		}
		if err := r.look(r.looks); err != nil && r.looks.Err() == nil {
			r.config.Log.Warn("cannot look how the sinks stand", "error", err)
		}
		if !pause.For(r.looks, lookGap) {
			return
		}
		timer.Reset(r.config.Every - lookGap)
	}
}

// begin begins a tenure.
func (r *Relay) begin(s *Sink, token, revision int64, until time.Time) {
	t := newTenure(r, s, token, revision, until)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tenures[s.Name] = t
	if r.ending { // nothing is begun, and the lease is given back
		t.hear(func(n *tidings) { n.drain = true })
	}
	r.work.Go(func() {
		t.run()
		r.end(t)
	})
}

// end takes notice that a tenure has ended.
func (r *Relay) end(t *tenure) {
	r.mu.Lock()
	delete(r.tenures, t.sink.Name)
	r.checkIdle()
	r.mu.Unlock()
	if t.released {
		r.config.Released()
	}
	r.Wake() // to take it again, unless it is paused
}
