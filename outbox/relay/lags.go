package relay

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/internal/kernel/backoff"
	"github.com/pawlhq/pawl/internal/kernel/loop"
)

const (
	findGap   = 10 * time.Millisecond // minimum gap between runs; requests in between share a statement
	maxWanted = 32 * maxReaders       // tenants per sink that are looked up by key; with more, all tenants are scanned
	maxPairs  = 4096                  // of sink and tenant, per statement
	scanSize  = 32 * maxReaders       // logs per step of a scan
)

// lagFinder finds logs with events after the cursors of the sinks that this node holds. Its cost
// depends on the active tenants: logs that grew are looked up by key, and all tenants are scanned,
// in steps, only for a newly claimed sink or after too many notifications. Each poll also reads the
// sum of the last positions; if it changed, all last positions are read and compared, so that lost
// notifications are harmless.
type lagFinder struct {
	relay *Relay
	loop  *loop.Loop       // woken for requests
	moved atomic.Bool      // a poll found another sum
	sum   atomic.Int64     // of the last positions
	took  atomic.Int64     // duration of the last readHeads, in ns
	heads map[string]int64 // last positions by tenant as last read; nil: never
}

// lagRequests are a holder's requests for logs whose cursors it does not know.
type lagRequests struct {
	mu      sync.Mutex
	tenants map[string]bool // whose logs have grown
	missed  bool            // logs may have grown that are not in tenants: a scan is needed

	scanning bool   // owned by the finder: a scan is in progress
	after    string // last tenant of the previous step
}

// request requests a tenant whose log has grown. Without capacity, or with too many requests, it
// requests a scan instead.
func (w *lagRequests) request(tenant string, room bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !room || len(w.tenants) >= maxWanted {
		w.missed = true
		return
	}
	w.tenants[tenant] = true
}

func (w *lagRequests) requestScan() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.missed = true
}

func (w *lagRequests) takeTenants(n int) (tenants []string) {
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

// mustScan reports whether a scan is in progress. It starts one if requested.
func (w *lagRequests) mustScan() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.scanning && w.missed {
		w.scanning, w.missed, w.after = true, false, ""
	}
	return w.scanning
}

// run serves all requests. Failed ones are retried after the next successful poll.
func (f *lagFinder) run(ctx context.Context) time.Duration {
	some, err := true, error(nil)
	for some && err == nil {
		some, err = f.find(ctx)
	}
	if err != nil && ctx.Err() == nil {
		f.relay.config.Log.Warn("cannot read the last positions of the logs", "error", err)
	}
	backoff.Sleep(ctx, findGap)
	return time.Hour // each poll wakes it
}

// find makes one step and reports whether there was anything to do. Requested tenants precede
// scans. The last positions are read before the first scan: later growth is either seen by the scan
// or differs from them.
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
		if h.logs.hasCapacity.Load() && h.logs.ctx.Err() == nil && h.wanted.mustScan() {
			return true, f.scan(ctx, held, h)
		}
	}
	return false, nil
}

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
	if err != nil { // some changes may be recorded without a notification
		f.heads = nil
		for _, h := range held {
			h.wanted.requestScan()
		}
		return err
	}
	f.sum.Store(sum)
	f.took.Store(int64(time.Since(begun)))
	if first || len(moved) == 0 { // new holders start with a scan
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

func (f *lagFinder) lookUp(ctx context.Context, held map[string]*holder) (some bool, err error) {
	var sinks, tenants []string
	for name, h := range held {
		for _, tenant := range h.wanted.takeTenants(maxPairs - len(sinks)) {
			sinks, tenants = append(sinks, name), append(tenants, tenant)
		}
	}
	if len(sinks) == 0 {
		return false, nil
	}
	_, _, err = f.notifyHolders(ctx, held, lookUpSQL, sinks, tenants)
	if err != nil {
		for _, name := range sinks {
			held[name].wanted.requestScan()
		}
	}
	return true, err
}

func (f *lagFinder) scan(ctx context.Context, held map[string]*holder, h *holder) error {
	w := &h.wanted
	last, count, err := f.notifyHolders(ctx, held, scanSQL, h.sink.Name, w.after, h.sink.Tenants, scanSize)
	if err == nil {
		w.after, w.scanning = last, count == scanSize
	}
	return err
}

// notifyHolders runs a statement and sends the logs that it finds to their holders. It returns their number and the
// tenant of the last one. It replans the statement for the current tables.
func (f *lagFinder) notifyHolders(ctx context.Context, held map[string]*holder, sql string, args ...any) (last string, count int, err error) {
	rows, _ := f.relay.config.Pool.Query(ctx, f.relay.in(sql), append([]any{pgx.QueryExecModeExec}, args...)...)
	lags := map[string][]tenantLag{}
	var name string
	var lag tenantLag
	_, err = pgx.ForEachRow(rows, []any{&name, &lag.tenant, &lag.cursor, &lag.head, &lag.revision}, func() error {
		lags[name] = append(lags[name], lag)
		count++
		return nil
	})
	if err != nil {
		return "", 0, err
	}
	for name, list := range lags {
		held[name].signals.send(func(s *signals) { s.lagging = append(s.lagging, list...) })
	}
	return lag.tenant, count, nil
}
