package relay

import (
	"context"
	"errors"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawlhq/pawl/outbox/sink"
)

const (
	storeEvery  = 100 * time.Millisecond // at most, while there is room in the window
	fetchEvery  = 5 * time.Millisecond   // at most, while there are rows to be read
	retryStore  = time.Second            // until a letter is sent again that did not arrive
	reloadEvery = time.Second            // at most
	stopGrace   = 5 * time.Second        // for calls to end whose context has ended
)

// Why the context of a call has ended.
var (
	errLost     = errors.New("another node may have taken the sink over")
	errStopping = errors.New("this node is stopping")
	errTimeout  = errors.New("the call took too long")
)

// tenure is the time for which this node holds a sink's lease. One goroutine
// decides everything; others read the logs, call the sink and talk to the
// database, and tell it what came of it.
type tenure struct {
	relay *Relay
	sink  *Sink
	token int64
	flow  *flow
	logs  map[string]*log
	queue []*log  // that wait for a reader
	kept  []piece // that wait for room

	pieces  chan piece
	reports chan report
	results chan result
	replies chan *reply
	poked   chan struct{} // one token: there is something to hear
	stopped chan struct{} // closed when calls should be broken off
	over    chan struct{} // closed at the end

	calls     context.Context // of the calls
	breakOff  context.CancelCauseFunc
	reads     context.Context // of the readers
	stopReads context.CancelFunc
	work      sync.WaitGroup // the readers
	stopOnce  sync.Once

	reading   int       // readers at work
	sending   bool      // a letter is under way
	storeNext time.Time // the earliest time of the next letter
	loadNext  time.Time // the earliest time of the next reload
	until     time.Time // the lease lasts at least so long
	revision  int64     // of the sink, as of the last reload
	moved     int64     // the revision up to which the moves of cursors are known
	reloads   bool      // which instances are aside should be read again
	breaking  bool      // calls were told to end
	left      bool      // those that ignore it are left alone
	released  bool      // it was given back

	lost    atomic.Bool // the lease is gone
	wants   atomic.Bool // more tenants could be read
	crowded atomic.Bool // tenants wait for a reader

	looked bool // a look has told of the tenants; it is the looker's

	mu   sync.Mutex
	tidy tidings // what is to be heard
	read map[string]bool
}

// tidings are what others tell a tenure.
type tidings struct {
	behind   []behind
	heard    map[string]int64
	revision int64
	until    time.Time
	rested   []*log  // that were let go, and whose time has come
	late     []*call // whose time is up, and the grace
	lost     bool
	drain    bool
}

// behind is a tenant whose log goes on after the cursor, as of a revision of the
// sink.
type behind struct {
	tenant                 string
	cursor, head, revision int64
}

// result is what a call came to.
type result struct {
	call     *call
	failures []*sink.Failure
}

func newTenure(r *Relay, s *Sink, token, revision int64, until time.Time) *tenure {
	t := &tenure{
		relay: r, sink: s, token: token, moved: revision, until: until, flow: newFlow(s.policy()), logs: map[string]*log{}, reloads: true,
		pieces: make(chan piece), reports: make(chan report), results: make(chan result, s.Calls), replies: make(chan *reply, 1),
		poked: make(chan struct{}, 1), stopped: make(chan struct{}), over: make(chan struct{}), read: map[string]bool{},
	}
	t.calls, t.breakOff = context.WithCancelCause(context.Background())
	t.reads, t.stopReads = context.WithCancel(context.Background())
	t.wants.Store(true)
	return t
}

// hear tells the tenure something.
func (t *tenure) hear(tell func(*tidings)) {
	t.mu.Lock()
	tell(&t.tidy)
	t.mu.Unlock()
	poke(t.poked)
}

// heard tells it that a log has grown, as somebody says. It is cheap where a
// reader is at work, which hears of it by itself.
func (t *tenure) heard(tenant string, head int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.read[tenant] {
		return
	}
	if t.tidy.heard == nil {
		t.tidy.heard = map[string]int64{}
	}
	t.tidy.heard[tenant] = max(t.tidy.heard[tenant], head)
	poke(t.poked)
}

// stop breaks off what is under way. It may be called twice.
func (t *tenure) stop() { t.stopOnce.Do(func() { close(t.stopped) }) }

// run is the tenure's life.
func (t *tenure) run() {
	defer close(t.over)
	timer := time.NewTimer(0)
	defer timer.Stop()
	stopped := t.stopped
	var grace <-chan time.Time
	for !t.ended() {
		t.act(time.Now())
		timer.Reset(t.pause(time.Now()))
		select {
		case p := <-t.pieces:
			t.takeIn(p, time.Now())
		case r := <-t.reports:
			t.hearReader(r)
		case r := <-t.results:
			t.settle(r, time.Now())
		case r := <-t.replies:
			t.takeReply(r, time.Now())
		case <-t.poked:
			t.listen()
		case <-stopped:
			stopped, t.breaking = nil, true
			t.drain()
			t.breakOff(errStopping)
			grace = time.After(stopGrace)
		case <-grace:
			t.left = t.flow.calls > 0
		case <-timer.C:
		}
	}
	t.stopReads()
	t.breakOff(errStopping)
	t.work.Wait()
	if t.flow.calls > 0 {
		t.relay.config.Log.Warn("a sink ignores that its calls were told to end", "sink", t.sink.Name, "calls", t.flow.calls)
	}
}

// ended reports whether nothing is left to do.
func (t *tenure) ended() bool {
	return (t.flow.calls == t.flow.abandoned || t.left) && !t.sending && (t.lost.Load() || t.released)
}

// act does what can be done now.
func (t *tenure) act(now time.Time) {
	f := t.flow
	switch {
	case t.lost.Load():
		return
	case now.After(t.until):
		t.lose("its lease could not be prolonged in time")
		return
	case f.circuit.farewell != "" && !f.drains:
		t.relay.config.Log.Warn("a sink's receiver wants no more events; it is paused", "sink", t.sink.Name, "answer", f.circuit.farewell)
		t.drain()
	}
	t.begin(now)
	if f.stalled() {
		f.relieve(len(t.queue) > 0, now)
	}
	if t.letGo(now) {
		t.begin(now)
	}
	if at, ok := t.letterDue(); ok && !now.Before(at) {
		t.send(now)
	}
	t.wants.Store(len(t.queue) < 32*readers)
}

// begin makes the calls that can be made.
func (t *tenure) begin(now time.Time) {
	for c := t.flow.next(now); c != nil; c = t.flow.next(now) {
		go t.deliver(c)
	}
}

// pause is how long nothing can be done unless something comes.
func (t *tenure) pause(now time.Time) time.Duration {
	next := t.until.Add(time.Millisecond)
	sooner := func(at time.Time) {
		if at.After(now) && at.Before(next) {
			next = at
		}
	}
	f := t.flow
	if !f.drains {
		sooner(f.alarms.next())
	}
	if f.circuit.open {
		sooner(f.circuit.sooner)
		sooner(f.circuit.retry)
	}
	if at, ok := t.letterDue(); ok {
		sooner(at)
	}
	return max(next.Sub(now), time.Millisecond)
}

// deliver makes a call.
func (t *tenure) deliver(c *call) {
	ctx, cancel := context.WithTimeoutCause(t.calls, t.sink.Timeout, errTimeout)
	defer cancel()
	late := time.AfterFunc(t.sink.Timeout+stopGrace, func() { t.hear(func(n *tidings) { n.late = append(n.late, c) }) })
	defer late.Stop()
	t.results <- result{c, t.call(ctx, c)}
}

// call calls the sink, and makes something of whatever it does.
func (t *tenure) call(ctx context.Context, c *call) (failures []*sink.Failure) {
	broken := func(format string, args ...any) []*sink.Failure {
		return sink.Together(context.Background(), c.events, sink.Fail(sink.Unavailable, nil, format, args...))
	}
	defer func() {
		if v := recover(); v != nil {
			t.relay.config.Log.Error("a sink panicked", "sink", t.sink.Name, "panic", v, "stack", string(debug.Stack()))
			failures = broken("the sink panicked: %v", v)
		}
	}()
	switch failures = t.sink.To.Deliver(ctx, c.events); {
	case failures == nil:
		return make([]*sink.Failure, len(c.events))
	case len(failures) != len(c.events):
		return broken("the sink answered for %d events of %d", len(failures), len(c.events))
	case !slices.ContainsFunc(failures, func(f *sink.Failure) bool { return f == nil || f.Kind != sink.Held }):
		return broken("the sink has tried none of the events")
	}
	return failures
}

// settle takes in what a call came to, and logs when the receiver as a whole goes
// away and comes back.
func (t *tenure) settle(r result, now time.Time) {
	f := t.flow
	was := f.circuit.failures > 0
	if r.call.abandoned {
		t.endedLate(r.call, now)
		return
	}
	r.call.over = true
	f.settle(r.call, r.failures, now)
	switch is := f.circuit.failures > 0; {
	case is && !was:
		t.relay.config.Log.Warn("a sink's receiver takes no events; it is tried until it does", "sink", t.sink.Name, "failure", f.news.failure)
	case was && !is:
		t.relay.config.Log.Info("a sink's receiver takes events again", "sink", t.sink.Name)
	}
}

// abandon gives up waiting for calls that do not end, unless they just have.
func (t *tenure) abandon(late []*call, now time.Time) {
	for _, c := range late {
		if c.over {
			continue
		}
		t.flow.abandon(c, now)
		t.relay.config.Log.Warn("a sink ignores that its call took too long; nothing else of these instances is delivered before it ends, or the sink is paused",
			"sink", t.sink.Name, "events", len(c.events), "timeout", t.sink.Timeout, "calls", t.flow.abandoned)
	}
}

// endedLate takes notice that a call has ended which was abandoned.
func (t *tenure) endedLate(c *call, now time.Time) {
	t.flow.ended(c, now)
	for _, it := range c.items {
		if l := t.logs[it.lane.tenant]; l != nil && l.rests { // it may have been let go because of the call
			l.rests = false
			t.startReading(l)
		}
	}
}

// drain lets what is under way come to its end, and gives the lease back then.
func (t *tenure) drain() {
	t.stopReads()
	t.flow.drain(time.Now())
}

// lose ends the tenure without another word to the database.
func (t *tenure) lose(why string) {
	if t.lost.Swap(true) {
		return
	}
	t.relay.stats.lost.Add(1)
	t.stopReads()
	t.breakOff(errLost)
	t.relay.config.Log.Warn("a sink is no longer this node's", "sink", t.sink.Name, "token", t.token, "why", why)
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
