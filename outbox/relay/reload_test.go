package relay

import (
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/internal/pgtest"
	"github.com/pawlhq/pawl/outbox/sink"
	"github.com/pawlhq/pawl/schema"
)

// Which instances of a full tenant are aside is read again when there may be others to
// know: one was delivered, or waits for a person. At rest it is not.
func TestAFullTenantsInstancesAreReadAgainWhenThereMayBeOthers(t *testing.T) {
	e := logOf("a")[0]
	for name, tt := range map[string]struct {
		exhausted Exhausted
		says      *sink.Failure
	}{
		"delivered":                     {Park, nil},
		"one that waits for a person":   {HoldInstance, sink.Fail(sink.Permanent, nil, "no")},
		"one that is tried again later": {HoldInstance, sink.Fail(sink.Temporary, nil, "no")},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(0, 0)
			at := newTenure(&Relay{config: Config{Log: slog.New(slog.DiscardHandler)}}, &Sink{Exhausted: tt.exhausted}, 1, 0, now)
			at.flow.policy.backoff = func(int) time.Duration { return time.Minute }
			at.flow.policy.attempts, at.flow.policy.slots, at.flow.policy.batch = 3, 1, 10
			exchange := func(l *letter) *letter {
				at.sending = true
				r := &reply{letter: l, sent: now, rows: map[*lane][]row{}, barred: map[*lane]bool{}, full: map[string]bool{}}
				if l.reload {
					at.reloads = false
					r.aside, r.full["t"] = []held{{"t", e.Instance, false}}, true
				}
				at.takeReply(r, now)
				return at.flow.letter()
			}
			l := exchange(&letter{reload: true})
			if len(l.hungry) != 1 || at.reloads {
				t.Fatalf("rows of %d instances are to be read; everything: %t", len(l.hungry), at.reloads)
			}
			at.flow.fetched(l.hungry[0], []row{{event: e}}, false, now)
			at.flow.settle(at.flow.next(now), []*sink.Failure{tt.says}, now)
			for range 3 {
				l = exchange(at.flow.letter())
				exchange(l)
			}
			if changes := tt.says == nil || tt.says.Kind == sink.Permanent; at.reloads != changes {
				t.Errorf("it is read again: %t", at.reloads)
			}
		})
	}
}

// Of several full tenants each has its share of what can be known, in the order of the
// index.
func TestFullTenantsShareWhatCanBeKnown(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	if _, err := schema.Migrate(t.Context(), pool, schema.Default); err != nil {
		t.Fatal(err)
	}
	execAll(t, pool, `
INSERT INTO pawl.outbox_dead (tenant, sink, position, type, ordinal, workflow, instance, status, kind, failure, attempts, created_at, updated_at)
SELECT t, 's', p, 'e', 0, 'w', md5(t || p)::uuid, CASE WHEN p % 3 = 0 THEN 'waiting' ELSE 'queued' END, 'temporary', 'no', 1, now(), now()
FROM unnest(ARRAY['t1', 't2', 't3']) t, generate_series(1, 300) p;
INSERT INTO pawl.outbox_dead (tenant, sink, position, type, ordinal, workflow, instance, status, kind, failure, attempts, created_at, updated_at)
SELECT 'small', 's', p, 'e', 0, 'w', md5(p::text)::uuid, 'waiting', 'temporary', 'no', 1, now(), now() FROM generate_series(1, 5) p`)
	rows, err := pool.Query(t.Context(), asideSQL, "s", true, 30, []string(nil))
	if err != nil {
		t.Fatal(err)
	}
	type found struct {
		Tenant, Instance string
		Waits, Full      bool
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (f found, err error) {
		err = row.Scan(&f.Tenant, &f.Instance, &f.Waits, &f.Full)
		return f, err
	})
	if err != nil {
		t.Fatal(err)
	}
	known, last, full := map[string]int{}, map[string]string{}, 0
	for _, f := range list {
		if f.Full {
			full++
			continue
		}
		if f.Tenant != "small" && (f.Waits || f.Instance <= last[f.Tenant]) {
			t.Errorf("%+v comes after %s", f, last[f.Tenant])
		}
		known[f.Tenant]++
		last[f.Tenant] = f.Instance
	}
	if full != 3 || known["small"] != 5 || known["t1"] != 10 || known["t2"] != 10 || known["t3"] != 10 {
		t.Errorf("%d are full; known are %v", full, known)
	}
}
