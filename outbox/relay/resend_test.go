package relay

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/kernel/outbox"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/outbox/sink"
	"github.com/pawlhq/pawl/schema"
)

// A batch is stored, its reply is lost, and an operator changes one of its rows before the batch is
// sent again. The operator's change persists.
func TestResentBatchKeepsOperatorChanges(t *testing.T) {
	for name, tt := range map[string]struct {
		status inspect.DeadStatus // of the row before the batch; "": the batch inserts the row
		says   *sink.Failure
		change func(*Table) (int64, error)
		want   inspect.DeadStatus
	}{
		"skip": {says: sink.Fail(sink.Permanent, nil, "no"), want: inspect.DeadSkipped, change: func(table *Table) (int64, error) {
			return table.Skip(t.Context(), inspect.DeadFilter{Sink: "main"}, "ann", "not needed")
		}},
		"redrive": {says: sink.Fail(sink.Permanent, nil, "no"), want: inspect.DeadQueued, change: func(table *Table) (int64, error) {
			return table.Redrive(t.Context(), inspect.DeadFilter{Sink: "main"}, "ann", "")
		}},
		"redrive of one that was given up again": {status: inspect.DeadQueued, says: sink.Fail(sink.Permanent, nil, "no"),
			want: inspect.DeadQueued,
			change: func(table *Table) (int64, error) {
				return table.Redrive(t.Context(), inspect.DeadFilter{Sink: "main"}, "ann", "")
			}},
		"redrive of one that was delivered": {status: inspect.DeadQueued, want: inspect.DeadQueued, change: func(table *Table) (int64, error) {
			return table.Redrive(t.Context(), inspect.DeadFilter{Sink: "main", Status: inspect.DeadRedriven}, "ann", "")
		}},
		"nothing": {status: inspect.DeadQueued, says: sink.Fail(sink.Permanent, nil, "no"), want: inspect.DeadWaiting},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := time.Unix(0, 0)
			pool := pgtest.Pool(t)
			same := schema.For(schema.Default)
			execAll(t, pool, `INSERT INTO pawl.outbox_sink (name, token, claimed_by, claimed_at, locked_until) VALUES ('main', 1, 'n', now(),
				now() + interval '1 hour')`)
			h := &holder{relay: &Relay{config: Config{Pool: pool, Events: outbox.New(pool, same, ""), Lease: time.Hour}, in: same},
				sink: &Sink{Name: "main"}}
			h.lease.token = 1
			table := NewTable(pool, same)
			store := func(b *storeBatch) *storeReply {
				r := h.storeBatch(b, time.Minute)
				require.Truef(t, r.err == nil && !r.lost, "%v %v", r.err, r.lost)
				return r
			}

			f, _ := flowOf(logOf("a"))
			if tt.status != "" { // the row has been redriven before
				f.applyResults(f.next(now), []*sink.Failure{sink.Fail(sink.Permanent, nil, "no")}, now)
				store(f.takeBatch())
				if n, err := table.Redrive(t.Context(), inspect.DeadFilter{Sink: "main"}, "bob", ""); n != 1 || err != nil {
					t.Fatal(n, err)
				}
				f, _ = flowOf(nil)
				e := logOf("a")[0]
				f.reloadDeferred([]deferredInstance{{"t", e.Instance, false}}, nil, now)
				f.addRows(f.takeBatch().fetch[0], []queuedRow{{event: e}}, false, now)
			}
			f.applyResults(f.next(now), []*sink.Failure{tt.says}, now)
			b := f.takeBatch()
			b.knownMoves = revision(t, h)
			store(b)
			f.requeueBatch(b, now) // the outcome is unknown
			if tt.change != nil {
				if n, err := tt.change(table); n != 1 || err != nil {
					t.Fatal(n, err)
				}
			}
			store(f.takeBatch())
			list, _, err := table.DeadLetters(t.Context(), inspect.DeadFilter{Sink: "main", Status: tt.want}, inspect.DeadPage{})
			assert.Truef(t, err == nil && len(list) == 1, "it is not %s any more: %+v, %v", tt.want, list, err)
		})
	}
}

// revision returns the sink's revision.
func revision(t *testing.T, h *holder) int64 {
	t.Helper()
	r := h.storeBatch(&storeBatch{}, time.Minute)
	require.NoError(t, r.err)
	return r.revision
}
