package metrics_test

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/metrics"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

type order struct {
	Method string `json:"method"`
}

// fails maps methods of payment to the ends of attempts of the activity pay.
var fails = map[string]func(context.Context, *workflow.Attempt) error{
	"card":   func(context.Context, *workflow.Attempt) error { return nil },
	"stolen": func(context.Context, *workflow.Attempt) error { return workflow.Final(errors.New("refused")) },
	"lost":   func(context.Context, *workflow.Attempt) error { return errors.New("no answer") },
	"panics": func(context.Context, *workflow.Attempt) error { panic("a defect") },
	"slow":   func(ctx context.Context, _ *workflow.Attempt) error { <-ctx.Done(); return ctx.Err() },
	"later": func(_ context.Context, a *workflow.Attempt) error {
		if a.Number == 1 {
			return workflow.NotDone(errors.New("busy"))
		}
		return nil
	},
}

// orders returns a workflow with an activity whose attempts end as the payload asks, and one that is undone.
func orders() workflow.Source {
	start := func(_ *workflow.Call, o *order, p order) error { o.Method = p.Method; return nil }
	none := func(*workflow.Call, *order, workflow.None) error { return nil }
	pay := func(ctx context.Context, a *workflow.Attempt, o order, _ workflow.None) (workflow.None, error) {
		return workflow.None{}, fails[o.Method](ctx, a)
	}
	reserve := func(context.Context, *workflow.Attempt, order, workflow.None) (workflow.None, error) {
		return workflow.None{}, nil
	}
	release := func(context.Context, *workflow.Attempt, order, workflow.None, *workflow.None) error { return nil }
	quick := workflow.Retry{Attempts: 2, First: time.Millisecond, Max: time.Millisecond}
	return workflow.Define("order", 1,
		workflow.Start("place", "placed", start),
		workflow.Do("reserve", workflow.From("placed"), "reserving", "reserved", reserve, none).
			OrElse("failed", func(*workflow.Call, *order, workflow.Failure) error { return nil }).Undo(release).Retry(quick),
		workflow.Do("pay", workflow.From("reserved"), "paying", "paid", pay, none).
			OrElse("failed", func(*workflow.Call, *order, workflow.Failure) error { return nil }).Undoes("reserve").
			Timeout(200*time.Millisecond).Retry(quick),
	).Final("paid", "failed")
}

// attempts returns the number of attempts in a collector by activity and outcome.
func attempts(t *testing.T, c prometheus.Collector) map[string]int {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(c)
	families, err := r.Gather()
	require.NoError(t, err)
	got := map[string]int{}
	for _, f := range families {
		if f.GetName() != "pawl_activity_duration_seconds" {
			continue
		}
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			assert.Equal(t, "order", labels["workflow"], "an attempt of the workflow")
			h := m.GetHistogram()
			got[labels["activity"]+" "+labels["outcome"]] = int(h.GetSampleCount())
			within := map[float64]uint64{}
			for _, b := range h.GetBucket() {
				within[b.GetUpperBound()] = b.GetCumulativeCount()
			}
			if labels["outcome"] == "timed_out" { // after 200 ms
				assert.Zero(t, within[.1])
				assert.GreaterOrEqual(t, h.GetSampleSum(), .2)
			}
			assert.Equal(t, h.GetSampleCount(), within[3600])
		}
	}
	return got
}

// pay reserves and pays an order and waits for both.
func pay(t *testing.T, e *engine.Engine, method string) {
	t.Helper()
	placed, err := e.Submit(t.Context(), transitions.Command{Workflow: "order", Transition: "place", Key: method,
		Payload: []byte(`{"method":"` + method + `"}`)})
	require.NoError(t, err)
	for _, activity := range []string{"reserve", "pay"} {
		accepted, err := e.Submit(t.Context(), transitions.Command{Workflow: "order", Transition: activity, Key: activity, Instance: placed.Instance})
		require.NoError(t, err)
		_, err = e.Await(t.Context(), transitions.Ref{Scope: accepted.Record.Scope, Key: activity})
		require.NoError(t, err)
	}
}

func TestActivityDurations(t *testing.T) {
	t.Parallel()
	e := started(t, orders())
	m := metrics.New(e.Admin(), metrics.Config{Timeout: time.Minute})
	for method := range fails {
		pay(t, e, method)
	}
	want := map[string]int{"reserve succeeded": 6, "pay succeeded": 2, "pay failed": 3, "pay retried": 3, "pay timed_out": 2, "reserve undone": 4}
	await.Eventually(t, "all attempts are measured", func() bool { return maps.Equal(attempts(t, m), want) })
}
