package relay

import (
	"testing"
	"time"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/pgtest"
	"github.com/pawlhq/pawl/outbox/sink"
)

// A letter arrives, its reply does not, and before it is sent again a person does
// something about what it has put aside. That stands.
func TestLetterThatIsSentAgainUndoesNothing(t *testing.T) {
	for name, tt := range map[string]struct {
		status inspect.DeadStatus // of the row before the letter; "": the letter puts it there
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
		"redrive of one that was given up again": {status: inspect.DeadQueued, says: sink.Fail(sink.Permanent, nil, "no"), want: inspect.DeadQueued,
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
			same := func(sql string) string { return sql }
			execAll(t, pool, `INSERT INTO pawl.outbox_sink (name, token, claimed_by, claimed_at, locked_until) VALUES ('main', 1, 'n', now(), now() + interval '1 hour')`)
			tenure := &tenure{relay: &Relay{config: Config{Pool: pool, Lease: time.Hour}, sql: newStatements(same)}, sink: &Sink{Name: "main"}, token: 1}
			table := NewTable(pool, same)
			exchange := func(l *letter) *reply {
				r := tenure.exchange(l, time.Minute)
				if r.err != nil || r.lost {
					t.Fatal(r.err, r.lost)
				}
				return r
			}

			f, _ := flowOf(logOf("a"))
			if tt.status != "" { // it is a row that a person has redriven once
				f.settle(f.next(now), []*sink.Failure{sink.Fail(sink.Permanent, nil, "no")}, now)
				exchange(f.letter())
				if n, err := table.Redrive(t.Context(), inspect.DeadFilter{Sink: "main"}, "bob", ""); n != 1 || err != nil {
					t.Fatal(n, err)
				}
				f, _ = flowOf(nil)
				e := logOf("a")[0]
				f.reload([]held{{"t", e.Instance, false}}, nil, now)
				f.fetched(f.letter().hungry[0], []row{{event: e}}, false, now)
			}
			f.settle(f.next(now), []*sink.Failure{tt.says}, now)
			l := f.letter()
			l.moved = revision(t, tenure)
			exchange(l)
			f.unsent(l, now) // as far as is known
			if tt.change != nil {
				if n, err := tt.change(table); n != 1 || err != nil {
					t.Fatal(n, err)
				}
			}
			exchange(f.letter())
			list, _, err := table.DeadLetters(t.Context(), inspect.DeadFilter{Sink: "main", Status: tt.want}, inspect.DeadPage{})
			if err != nil || len(list) != 1 {
				t.Errorf("it is not %s any more: %+v, %v", tt.want, list, err)
			}
		})
	}
}

// revision is the sink's.
func revision(t *testing.T, tenure *tenure) int64 {
	t.Helper()
	r := tenure.exchange(&letter{}, time.Minute)
	if r.err != nil {
		t.Fatal(r.err)
	}
	return r.revision
}
