package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// expiring is a workflow that a timer ends.
func expiring() workflow.Source {
	noop := nothing[parcel, workflow.None]
	return workflow.Define("parcel", 1,
		workflow.Start("pack", "packed", noop),
		workflow.On("expire", workflow.From("packed"), "expired", noop),
	).Final("expired").After("ttl", workflow.From("packed"), time.Hour, "expire")
}

// The timers become due during a pause of their instances or of the workflow. No node claims them until the pause ends; then they fire.
func TestPause_Timers(t *testing.T) {
	t.Parallel()
	for _, of := range []string{"instances", "a workflow"} {
		t.Run(of, func(t *testing.T) {
			t.Parallel()
			pool, e := started(t, with(expiring()))
			const n = 12
			var packed []transitions.Receipt
			for i := range n {
				packed = append(packed, submit(t, e, transitions.Command{Workflow: "parcel", Transition: "pack", Key: fmt.Sprint(i)}))
			}
			operate := func(r transitions.Receipt, a transitions.Action) {
				t.Helper()
				require.NoError(t, errOf(e.Admin().Operate(t.Context(), transitions.Command{Key: string(a), Instance: r.Instance},
					transitions.Operation{Action: a})))
			}
			if of == "instances" {
				for _, r := range packed {
					operate(r, transitions.Pause)
				}
			} else if err := e.Admin().PauseWorkflow(t.Context(), "", "parcel", "ann", ""); err != nil {
				t.Fatal(err)
			}
			exec(t, pool, "UPDATE pawl.command SET run_at = now() - interval '1 minute' WHERE phase = 'scheduled'")
			eventually(t, "they are set aside", func() bool { return e.Admin().InFlightStats().Parked == n })
			s := e.Admin().InFlightStats()
			assert.Equalf(t, int64(0), s.Claimed, "%+v", s)
			fires := n
			if of == "instances" {
				fires = n / 2
				for _, r := range packed[:fires] {
					operate(r, transitions.Resume)
				}
			} else if err := e.Admin().ResumeWorkflow(t.Context(), "", "parcel"); err != nil {
				t.Fatal(err)
			}
			eventually(t, "they fire", func() bool { return e.Admin().InFlightStats().Decided == int64(fires) })
			s = e.Admin().InFlightStats()
			assert.Truef(t, s.Claimed == int64(fires) && s.Parked == n, "%+v", s)
			assert.Equal(t, fires, query[int](t, pool, "SELECT count(*) FROM pawl.instance WHERE state = 'expired'"), "have expired")
		})
	}
}
