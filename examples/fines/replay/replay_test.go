package replay_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/examples/fines"
	"github.com/pawlhq/pawl/examples/fines/replay"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/internal/testkit/tables"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func TestMain(m *testing.M) { tables.Main(m) }

// log is small, and has refusals.
var log = replay.Made(7, 600)

func start(t testing.TB) (*engine.Engine, *pgxpool.Pool) {
	t.Helper()
	pool := pgtest.Pool(t)
	e, err := engine.New(engine.Config{Pool: pool, Workflows: []workflow.Source{fines.Workflow}})
	require.NoError(t, err)
	require.NoError(t, e.Start(t.Context()))
	t.Cleanup(func() { e.Stop(context.Background()) })
	return e, pool
}

func run(t testing.TB, c replay.Config) *replay.Report {
	t.Helper()
	c.Log = log
	report, err := replay.Run(t.Context(), c)
	require.NoError(t, err, report)
	return report
}

func check(t testing.TB, report *replay.Report, e *engine.Engine, pool *pgxpool.Pool) {
	t.Helper()
	require.NoError(t, replay.Check(t.Context(), replay.Config{Log: log, Database: pool, Verifier: e.Admin()}, report))
}

func TestEveryEventHasOneEffectAndOneReplay(t *testing.T) {
	t.Parallel()
	e, pool := start(t)
	var last int64
	report := run(t, replay.Config{Targets: []replay.Target{e}, Batch: 100, Progress: func(events int64) { last = events }})
	check(t, report, e, pool)
	assert.NoError(t, report.Err(), report)
	var refused int64
	for _, n := range report.Refused {
		refused += n
	}
	assert.Truef(t, report.Cases == 600 && refused != 0 && report.Once == report.Accepted+refused && last == report.Events,
		"progress %d\n%v", last, report)
	d := report.Durable
	if d.Cases != 600 || d.Head != report.Accepted || d.Rows != report.Accepted || d.Chains != 600 || d.Commands != report.Once {
		t.Errorf("%+v", d)
	}
	for _, want := range []string{"600 cases", " executed twice", "\n  0 replayed to both", "0 differences"} {
		assert.Containsf(t, report.String(), want, "the report does not say:\n%v", report)
	}
}

// target makes a Target of a function.
type target func(ctx context.Context, cs []transitions.Command) []transitions.Reply

func (f target) SubmitMany(ctx context.Context, cs []transitions.Command) []transitions.Reply {
	return f(ctx, cs)
}

var errGone = &workflow.Error{Code: workflow.Unavailable, Message: "gone"}

// Every third request is answered with an error, before or after its execution; the replay continues until it has every answer.
func TestRunSurvivesOutages(t *testing.T) {
	t.Parallel()
	e, pool := start(t)
	var calls atomic.Int64
	unsteady := target(func(ctx context.Context, cs []transitions.Command) []transitions.Reply {
		n := calls.Add(1)
		if n%6 == 0 {
			return allFail(cs, errGone)
		}
		replies := e.SubmitMany(ctx, cs)
		if n%6 == 3 {
			return allFail(cs, errGone)
		}
		return replies
	})
	report := run(t, replay.Config{Targets: []replay.Target{unsteady}, Batch: 50})
	check(t, report, e, pool)
	err := report.Err()
	assert.Truef(t, err == nil && report.Again != 0 && report.Found != 0, "%v\n%v", err, report)
}

func allFail(cs []transitions.Command, err error) []transitions.Reply {
	replies := make([]transitions.Reply, len(cs))
	for i := range replies {
		replies[i].Err = err
	}
	return replies
}

// What a target does wrong is seen.
func TestRunSeesWhatATargetDoesWrong(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		spoil func(c transitions.Command, r *transitions.Reply, call int64)
		seen  func(r *replay.Report) bool
	}{
		"executed twice": {
			func(_ transitions.Command, r *transitions.Reply, _ int64) { r.Receipt.Replayed = false },
			func(r *replay.Report) bool { return r.Twice > 1000 && r.Unequal == 0 && r.Wrong == 0 },
		},
		"different bytes": {
			func(c transitions.Command, r *transitions.Reply, call int64) {
				if c.Key == "G000005-1" {
					r.Receipt.Body = fmt.Append(r.Receipt.Body, call) // the other caller has the same bytes, and must keep them
				}
			},
			func(r *replay.Report) bool { return r.Twice == 0 && r.Unequal == 1 && r.Wrong == 0 },
		},
		"a refusal instead": {
			func(c transitions.Command, r *transitions.Reply, _ int64) {
				if c.Key == "G000005-1" {
					r.Receipt = transitions.Receipt{Status: 409, Body: []byte(`{"code":"guard_refused","status":409,"detail":"no"}`)}
				}
			},
			func(r *replay.Report) bool { return r.Wrong == 1 && r.Refused["no"] == 1 },
		},
		"another version": {
			func(c transitions.Command, r *transitions.Reply, _ int64) {
				if c.Key == "G000005-1" {
					r.Receipt.Version++
				}
			},
			func(r *replay.Report) bool { return r.Wrong == 1 },
		},
		"a defect": {
			func(c transitions.Command, r *transitions.Reply, _ int64) {
				if c.Key == "G000005-1" {
					*r = transitions.Reply{Err: workflow.Errorf(workflow.Internal, "broken")}
				}
			},
			func(r *replay.Report) bool { return r.Wrong == 1 && r.Malformed["internal_error"] == 1 },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, _ := start(t)
			var calls atomic.Int64
			spoiled := target(func(ctx context.Context, cs []transitions.Command) []transitions.Reply {
				replies := e.SubmitMany(ctx, cs)
				call := calls.Add(1)
				for i := range replies {
					tt.spoil(cs[i], &replies[i], call)
				}
				return replies
			})
			report := run(t, replay.Config{Targets: []replay.Target{spoiled}})
			assert.Truef(t, tt.seen(report), "not seen:\n%v", report)
			assert.Equalf(t, (report.Twice+report.Unequal+report.Wrong == 0), (report.Err() == nil), "the error is %v", report.Err())
		})
	}
}

func TestRunEnds(t *testing.T) {
	t.Parallel()
	gone := target(func(_ context.Context, cs []transitions.Command) []transitions.Reply { return allFail(cs, errGone) })
	short := target(func(context.Context, []transitions.Command) []transitions.Reply { return nil })
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	for name, tt := range map[string]struct {
		ctx    context.Context
		config replay.Config
		want   string
	}{
		"when patience ends": {t.Context(), replay.Config{Log: log, Targets: []replay.Target{gone}, Patience: time.Millisecond},
			"gone"},
		"when ctx ends":            {ended, replay.Config{Log: log, Targets: []replay.Target{gone}}, "enough"},
		"when answers are missing": {t.Context(), replay.Config{Log: log, Targets: []replay.Target{short}}, "0 answers"},
		"when there is no log": {t.Context(), replay.Config{Log: replay.File("nowhere.csv"), Targets: []replay.Target{gone}},
			"nowhere.csv"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := replay.Run(tt.ctx, tt.config)
			assert.ErrorContains(t, err, tt.want)
		})
	}
}
