package bench

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/outbox/relay"
)

// unseenRate is how many tenants a second do something that the node has not seen before.
const unseenRate = 4

// webhooks is the name of a scenario of many tenants and webhooks.
func webhooks(tenants, sinks int) string {
	return fmt.Sprintf("relay: %d webhooks, %d tenants", sinks, tenants)
}

// lagP99 is in milliseconds.
func lagP99(s *sample) float64 { return float64(s.lag.p99) / 1e6 }

// unseen is a scenario of many tenants and webhooks, all of which have everything. Another
// node commits, each time for a tenant that the one with the webhooks has not seen.
func unseen(tenants, sinks int) *scenario {
	return &scenario{name: webhooks(tenants, sinks), replays: true, run: func(ctx context.Context, e *env) (*sample, error) {
		list, taps, err := e.hooks(sinks)
		if err == nil {
			err = e.restingTenants(ctx, tenants, list)
		}
		if err != nil {
			return nil, err
		}
		if _, err = e.engine(ctx, engine.Config{Sinks: list}, false); err != nil {
			return nil, err
		}
		other, err := e.engine(ctx, engine.Config{}, false)
		if err != nil {
			return nil, err
		}
		var n atomic.Int64
		place := func(ctx context.Context) (int, error) {
			c := placeAt(0)
			c.Tenant = restingTenant(int(n.Add(1)))
			r, err := other.Submit(ctx, c)
			if err == nil {
				err = r.Err()
			}
			return 1, err
		}
		caughtUp := func() (err error) {
			for _, t := range taps {
				if err == nil {
					err = t.await(ctx, n.Load())
				}
			}
			return err
		}
		if _, err = place(ctx); err == nil {
			err = caughtUp() // all sinks are claimed
		}
		if err != nil {
			return nil, err
		}
		for _, t := range taps {
			t.lag = nil
		}
		s, err := phase(ctx, []caller{place, place, place, place}, unseenRate, e.Duration)
		if err == nil {
			err = caughtUp()
		}
		if err != nil {
			return nil, err
		}
		var lags []time.Duration
		for _, t := range taps {
			t.mu.Lock()
			lags = append(lags, t.lag...)
			t.mu.Unlock()
		}
		s.lag = latencyOf(lags)
		return s, nil
	}}
}

// hooks are webhooks whose receiver takes everything.
func (e *env) hooks(count int) (list []relay.Sink, taps []*tap, err error) {
	address := e.listen(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	for i := range count {
		to, err := hook(address)
		if err != nil {
			return nil, nil, err
		}
		taps = append(taps, &tap{Sink: to})
		list = append(list, relay.Sink{Name: fmt.Sprintf("hook-%d", i), To: taps[i], Calls: 64, Batch: 16})
	}
	return list, taps, nil
}

// restingTenant is the name of a tenant that does nothing, by its number.
func restingTenant(n int) string { return fmt.Sprintf("resting-%05d", n) }

// restingTenants makes logs of tenants, of which the sinks have everything.
func (e *env) restingTenants(ctx context.Context, tenants int, sinks []relay.Sink) error {
	for _, s := range sinks {
		if err := e.db.exec(ctx, "INSERT INTO {pawl}.outbox_sink (name) VALUES ($1)", s.Name); err != nil {
			return err
		}
	}
	for _, sql := range []string{
		"INSERT INTO {pawl}.log SELECT 'resting-' || lpad(n::text, 5, '0'), 1 FROM generate_series(1, $1::int) AS n",
		`INSERT INTO {pawl}.outbox_cursor (tenant, sink, position, updated_at)
			SELECT tenant, name, head, now() FROM {pawl}.log, {pawl}.outbox_sink WHERE $1::int > 0`,
	} {
		if err := e.db.exec(ctx, sql, tenants); err != nil {
			return err
		}
	}
	return e.db.exec(ctx, "ANALYZE {pawl}.log, {pawl}.outbox_cursor, {pawl}.outbox_sink")
}
