package engine_test

import (
	"cmp"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/inspect"
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
			pause := func(r transitions.Receipt, a transitions.Action) {
				operate(t, e, transitions.Command{Key: string(a), Instance: r.Instance}, transitions.Operation{Action: a})
			}
			if of == "instances" {
				for _, r := range packed {
					pause(r, transitions.Pause)
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
					pause(r, transitions.Resume)
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

func TestPausedInstancesAreListedWithWhoAndWhy(t *testing.T) {
	t.Parallel()
	e := newEngine(t, database(t), flows(fares(), loans(1)))
	pause := func(c transitions.Command, action transitions.Action, reason string) uuid.UUID {
		id := transitions.InstanceID(cmp.Or(c.Tenant, transitions.DefaultTenant), c.Workflow, c.BusinessKey)
		operate(t, e, transitions.Command{Tenant: c.Tenant, Instance: id, Key: string(action), Actor: "olga"},
			transitions.Operation{Action: action, Reason: reason})
		return id
	}
	want := map[uuid.UUID]string{}
	for n := range 5 {
		submit(t, e, applied(fmt.Sprint("L-", n), 100))
		want[pause(on("", fmt.Sprint("L-", n), "", 0, ""), transitions.Pause, fmt.Sprint("reason ", n))] = fmt.Sprint("reason ", n)
	}
	delete(want, pause(on("", "L-4", "", 0, ""), transitions.Resume, "over"))
	board := fare("board", "F-1")
	board.BusinessKey, board.Payload = "", []byte(`{"number":"F-1"}`)
	submit(t, e, board)
	want[pause(fare("", "F-1"), transitions.Pause, "")] = ""
	another := applied("L-1", 100)
	another.Tenant = "another"
	submit(t, e, another)
	another.BusinessKey = "L-1"
	pause(another, transitions.Pause, "")

	f := inspect.PausedFilter{Limit: 2}
	got := map[uuid.UUID]string{}
	for more := true; more; {
		list, next, err := e.Admin().PausedInstances(t.Context(), f)
		require.Truef(t, err == nil && len(list) != 0 && len(list) <= 2, "%+v, %v", list, err)
		for _, p := range list {
			got[p.Instance] = p.Reason
			assert.Truef(t, p.Actor == "olga" && !p.At.IsZero() && p.State != "" && p.BusinessKey != "", "%+v", p)
		}
		f.After, more = list[len(list)-1], next
	}
	assert.Equal(t, want, got)
	list, _, err := e.Admin().PausedInstances(t.Context(), inspect.PausedFilter{Workflow: "fare"})
	assert.Truef(t, err == nil && len(list) == 1, "%+v, %v", list, err)
	_, _, err = e.Admin().PausedInstances(t.Context(), inspect.PausedFilter{Workflow: "x"})
	wantCode(t, err, workflow.WorkflowNotFound)
	_, _, err = e.Admin().PausedInstances(t.Context(), inspect.PausedFilter{Tenant: "a\x00"})
	wantCode(t, err, workflow.InvalidRequest)
}
