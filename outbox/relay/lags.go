package relay

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/internal/kernel/pause"
)

const (
	findGap   = 10 * time.Millisecond // between two rounds of a lagFinder, at least: what is asked meanwhile is one statement
	maxWanted = 32 * maxReaders       // tenants of a sink whose cursors are asked for one by one; where there are more, all are passed over
	maxPairs  = 4096                  // of sink and tenant, in one statement
	passSize  = 32 * maxReaders       // logs in one step of a pass
)

// lagFinder finds the logs that go on after the cursors of the sinks that this node
// holds. What it costs depends on the tenants that do something: a tenant of which a
// commit or a hint tells is looked up by its key, and all tenants are passed over, step
// by step, only for a sink that has just been claimed, or had no room for all that it was told.
// So that nothing depends on hints, each poll asks for the sum of all heads, and where
// it is another one the heads are read and compared.
type lagFinder struct {
	relay *Relay
	woken chan struct{}    // one token: something may be wanted
	moved atomic.Bool      // a poll has found another sum
	sum   atomic.Int64     // of heads
	took  atomic.Int64     // by the last reading of the heads, in ns
	heads map[string]int64 // of all logs, as they were read last; nil: never
}

// lagRequests are what a holder wants to know of logs whose cursors it does not know.
type lagRequests struct {
	mu      sync.Mutex
	tenants map[string]struct{} // whose logs have grown
	missed  bool                // logs may go on of which it does not know: it wants to pass over all

	passing bool   // the finder's: a pass is under way
	after   string // the last tenant that it told of
}

// want notes a tenant whose log has grown. Where there is no room for it, or there are
// too many, it is found in a pass over all.
func (w *lagRequests) want(tenant string, room bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !room || len(w.tenants) >= maxWanted {
		w.missed = true
		return
	}
	if w.tenants == nil {
		w.tenants = map[string]struct{}{}
	}
	w.tenants[tenant] = struct{}{}
}

// wantAll lets all tenants be passed over.
func (w *lagRequests) wantAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.missed = true
}

// take takes up to n tenants.
func (w *lagRequests) take(n int) (tenants []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for tenant := range w.tenants {
		if len(tenants) == n {
			break
		}
		tenants = append(tenants, tenant)
		delete(w.tenants, tenant)
	}
	return tenants
}

// mustPass reports whether a pass is under way, or begins one that is wanted.
func (w *lagRequests) mustPass() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.passing && w.missed {
		w.passing, w.missed, w.after = true, false, ""
	}
	return w.passing
}

func newLagFinder(r *Relay) *lagFinder { return &lagFinder{relay: r, woken: make(chan struct{}, 1)} }

// wake lets it find what is wanted.
func (f *lagFinder) wake() { poke(f.woken) }

// noteSum takes in the sum of the heads of all logs, as a poll says.
func (f *lagFinder) noteSum(sum int64) {
	if sum != f.sum.Load() {
		f.moved.Store(true)
	}
}

// run finds what is wanted, until the relay ends. What fails is wanted still, and is
// tried again after the next poll that succeeds.
func (f *lagFinder) run() {
	ctx := f.relay.ctx
	for {
		select {
		case <-f.woken:
		case <-ctx.Done():
			return
		}
		some, err := true, error(nil)
		for some && err == nil {
			some, err = f.find(ctx)
		}
		if err != nil && ctx.Err() == nil {
			f.relay.config.Log.Warn("cannot read how far the logs are", "error", err)
		}
		if !pause.For(ctx, findGap) {
			return
		}
	}
}

// find makes a step, and reports whether there was something to do. Tenants that are
// named come before those of a pass. The heads are read before the first pass: what
// moves later is either in the pass, or differs from them.
func (f *lagFinder) find(ctx context.Context) (some bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, queryBudget)
	defer cancel()
	held := f.relay.held()
	maps.DeleteFunc(held, func(_ string, h *holder) bool { return h.lease.lost.Load() })
	if len(held) > 0 && (f.heads == nil || f.moved.Load()) {
		if err := f.readHeads(ctx, held); err != nil {
			return false, err
		}
	}
	if some, err = f.lookUp(ctx, held); some || err != nil {
		return some, err
	}
	for _, h := range held {
		if h.logs.mayLoad() && h.wanted.mustPass() {
			return true, f.pass(ctx, held, h)
		}
	}
	return false, nil
}

// readHeads reads the heads of all logs, and tells the holders of those that have moved
// since they were read last.
func (f *lagFinder) readHeads(ctx context.Context, held map[string]*holder) error {
	f.moved.Store(false)
	begun, sum := time.Now(), int64(0)
	first, moved := f.heads == nil, map[string]int64{}
	if first {
		f.heads = map[string]int64{}
	}
	err := f.relay.config.Events.EachHead(ctx, func(tenant string, head int64) {
		sum += head
		if f.heads[tenant] != head {
			f.heads[tenant], moved[tenant] = head, head
		}
	})
	if err != nil { // some may have been taken in that nobody is told of
		f.heads = nil
		for _, h := range held {
			h.wanted.wantAll()
		}
		return err
	}
	f.sum.Store(sum)
	f.took.Store(int64(time.Since(begun)))
	if first || len(moved) == 0 { // a holder begins with a pass
		return nil
	}
	for _, h := range held {
		h.signals.send(func(s *signals) {
			for tenant, head := range moved {
				if h.sink.serves(tenant) {
					s.confirmed[tenant] = head
				}
			}
		})
	}
	return nil
}

// lookUp finds the cursors that are wanted of some tenants.
func (f *lagFinder) lookUp(ctx context.Context, held map[string]*holder) (some bool, err error) {
	var sinks, tenants []string
	for name, h := range held {
		for _, tenant := range h.wanted.take(maxPairs - len(sinks)) {
			sinks, tenants = append(sinks, name), append(tenants, tenant)
		}
	}
	if len(sinks) == 0 {
		return false, nil
	}
	_, err = f.tell(ctx, held, f.relay.sql.lookUp, sinks, tenants)
	if err != nil {
		for _, name := range sinks {
			held[name].wanted.wantAll()
		}
	}
	return true, err
}

// pass makes the next step of a pass over all tenants for a sink.
func (f *lagFinder) pass(ctx context.Context, held map[string]*holder, h *holder) error {
	w := &h.wanted
	last, err := f.tell(ctx, held, f.relay.sql.pass, h.sink.Name, w.after, h.sink.Tenants, passSize)
	if err != nil {
		return err
	}
	w.after, w.passing = last.tenant, last.count == passSize
	return nil
}

// found is what a statement has told.
type found struct {
	count  int
	tenant string // of the last
}

// tell tells the holders which logs go on, as a statement finds.
func (f *lagFinder) tell(ctx context.Context, held map[string]*holder, sql string, args ...any) (all found, err error) {
	rows, err := f.relay.config.Pool.Query(ctx, sql, append([]any{pgx.QueryExecModeExec}, args...)...) // planned for the tables as they are
	if err != nil {
		return all, err
	}
	lags := map[string][]tenantLag{}
	var name string
	var lag tenantLag
	if _, err = pgx.ForEachRow(rows, []any{&name, &lag.tenant, &lag.cursor, &lag.head, &lag.revision}, func() error {
		lags[name] = append(lags[name], lag)
		all.count++
		all.tenant = lag.tenant
		return nil
	}); err != nil {
		return all, err
	}
	for name, list := range lags {
		held[name].signals.send(func(s *signals) { s.lagging = append(s.lagging, list...) })
	}
	return all, nil
}
