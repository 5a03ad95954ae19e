package engine_test

import (
	"fmt"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func TestPausedInstancesAreListedWithWhoAndWhy(t *testing.T) {
	t.Parallel()
	e := newEngine(t, database(t), flows(fares(), loans(1)))
	pause := func(action transitions.Action, id uuid.UUID, tenant, reason string) {
		t.Helper()
		c := transitions.Command{Tenant: tenant, Instance: id, Key: string(action) + id.String(), Actor: "olga"}
		r, err := e.Admin().Operate(t.Context(), c, transitions.Operation{Action: action, Reason: reason})
		if err == nil {
			err = r.Err()
		}
		require.NoError(t, err)
	}
	want := map[uuid.UUID]string{}
	for n := range 5 {
		id := submit(t, e, applied(fmt.Sprint("L-", n), 100)).Instance
		if n == 4 {
			pause(transitions.Pause, id, "", "for a moment")
			pause(transitions.Resume, id, "", "over")
			continue
		}
		want[id] = fmt.Sprint("reason ", n)
		pause(transitions.Pause, id, "", want[id])
	}
	board := fare("board", "F-1")
	board.BusinessKey, board.Payload = "", []byte(`{"number":"F-1"}`)
	other := submit(t, e, board).Instance
	pause(transitions.Pause, other, "", "")
	another := applied("L-1", 100)
	another.Tenant = "another"
	pause(transitions.Pause, submit(t, e, another).Instance, "another", "")

	f := inspect.PausedFilter{Limit: 2}
	var list []inspect.PausedInstance
	for more := true; more; f.After = list[len(list)-1] {
		var page []inspect.PausedInstance
		var err error
		page, more, err = e.Admin().PausedInstances(t.Context(), f)
		require.Truef(t, err == nil && len(page) != 0 && len(page) <= 2, "%+v, %v", page, err)
		list = append(list, page...)
	}
	require.Truef(t, len(list) == 5 && list[0].Instance == other && list[0].Workflow == "fare" && list[0].Reason == "", "%+v", list)
	for _, p := range list[1:] {
		reason, is := want[p.Instance]
		assert.Truef(t, is && p.Reason == reason && p.Actor == "olga" && !p.At.IsZero() && p.State == "open" && p.BusinessKey != "", "%+v", p)
		delete(want, p.Instance)
	}
	if list, _, err := e.Admin().PausedInstances(t.Context(), inspect.PausedFilter{Workflow: "fare"}); err != nil || len(list) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	_, _, err := e.Admin().PausedInstances(t.Context(), inspect.PausedFilter{Workflow: "x"})
	wantCode(t, err, workflow.WorkflowNotFound)
	_, _, err = e.Admin().PausedInstances(t.Context(), inspect.PausedFilter{Tenant: "a\x00"})
	wantCode(t, err, workflow.InvalidRequest)
}
