package relay

import (
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/outbox/sink"
	"github.com/pawlhq/pawl/schema"
)

// The deferred instances of a full tenant are read again after one was delivered or waits for an
// operator, and not otherwise.
func TestFullTenantIsReloadedOnCapacity(t *testing.T) {
	e := logOf("a")[0]
	for name, tt := range map[string]struct {
		exhausted Exhausted
		says      *sink.Failure
	}{
		"delivered":                      {Park, nil},
		"one that waits for an operator": {HoldInstance, sink.Fail(sink.Permanent, nil, "no")},
		"one that is tried again later":  {HoldInstance, sink.Fail(sink.Temporary, nil, "no")},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(0, 0)
			h := newHolder(&Relay{config: Config{Log: slog.New(slog.DiscardHandler)}}, &Sink{Exhausted: tt.exhausted}, 1, 0, now)
			h.flow.policy.backoff = func(int) time.Duration { return time.Minute }
			h.flow.policy.attempts, h.flow.policy.calls, h.flow.policy.batch = 3, 1, 10
			store := func(b *storeBatch) *storeBatch {
				h.store.sending = true
				r := &storeReply{batch: b, sent: now, rows: map[*instanceQueue][]queuedRow{}, onHold: map[*instanceQueue]bool{},
					full: map[string]bool{}}
				if b.reload {
					h.store.reload = false
					r.deferred, r.full["t"] = []deferredInstance{{"t", e.Instance, false}}, true
				}
				h.handleReply(r, now)
				return h.flow.takeBatch()
			}
			b := store(&storeBatch{reload: true})
			require.Truef(t, len(b.fetch) == 1 && !h.store.reload,
				"rows of %d instances are to be read; everything: %t", len(b.fetch), h.store.reload)
			h.flow.addRows(b.fetch[0], []queuedRow{{event: e}}, false, now)
			h.flow.applyResults(h.flow.next(now), []*sink.Failure{tt.says}, now)
			for range 3 {
				store(store(h.flow.takeBatch()))
			}
			changes := tt.says == nil || tt.says.Kind == sink.Permanent
			assert.Equal(t, changes, h.store.reload, "it is read again")
		})
	}
}

// Full tenants share the limit evenly, in index order.
func TestFullTenantsShareTheLimit(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	if _, err := schema.Migrate(t.Context(), pool, schema.Default); err != nil {
		t.Fatal(err)
	}
	execAll(t, pool, `
INSERT INTO pawl.outbox_dead (tenant, sink, position, type, ordinal, workflow, instance, status, kind, failure, attempts, created_at,
	updated_at)
SELECT t, 's', p, 'e', 0, 'w', md5(t || p)::uuid, CASE WHEN p % 3 = 0 THEN 'waiting' ELSE 'queued' END, 'temporary', 'no', 1, now(), now()
FROM unnest(ARRAY['t1', 't2', 't3']) t, generate_series(1, 300) p;
INSERT INTO pawl.outbox_dead (tenant, sink, position, type, ordinal, workflow, instance, status, kind, failure, attempts, created_at,
	updated_at)
SELECT 'small', 's', p, 'e', 0, 'w', md5(p::text)::uuid, 'waiting', 'temporary', 'no', 1, now(), now() FROM generate_series(1, 5) p`)
	rows, err := pool.Query(t.Context(), pgtest.SQL(deferredSQL), "s", true, 30, []string(nil))
	require.NoError(t, err)
	type found struct {
		Tenant, Instance string
		Waits, Full      bool
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (f found, err error) {
		err = row.Scan(&f.Tenant, &f.Instance, &f.Waits, &f.Full)
		return f, err
	})
	require.NoError(t, err)
	known, last, full := map[string]int{}, map[string]string{}, 0
	for _, f := range list {
		if f.Full {
			full++
			continue
		}
		assert.Falsef(t, f.Tenant != "small" && (f.Waits || f.Instance <= last[f.Tenant]), "%+v comes after %s", f, last[f.Tenant])
		known[f.Tenant]++
		last[f.Tenant] = f.Instance
	}
	assert.Truef(t, full == 3 && known["small"] == 5 && known["t1"] == 10 && known["t2"] == 10 && known["t3"] == 10,
		"%d are full; known are %v", full, known)
}
