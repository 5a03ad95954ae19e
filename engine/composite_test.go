package engine_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

type claimSteps struct {
	Steps int `json:"steps"`
}

func claimStep(_ *workflow.Call, d *claimSteps, _ workflow.None) error {
	d.Steps++
	return nil
}

func claimAuto(_ *workflow.Call, d *claimSteps) error {
	d.Steps += 10
	return nil
}

// claims has checks side by side, a suspension that returns to them, and what follows by itself.
func claims(version int, more ...workflow.Part[claimSteps]) *workflow.Definition[claimSteps] {
	return workflow.Define("claim", version, append([]workflow.Part[claimSteps]{
		workflow.Start("file", "checking", claimStep),
		workflow.On("documents", workflow.From("wanted"), "documents_ok", claimStep),
		workflow.On("score", workflow.From("unscored"), "cleared", claimStep),
		workflow.On("suspend", workflow.From("checking"), "suspended", claimStep),
		workflow.On("resume", workflow.From("suspended"), workflow.Last("checking"), claimStep),
		workflow.Auto("settle", workflow.From("deciding"), "closed", claimAuto),
	}, more...)...).
		Regions("checking",
			workflow.Region("papers", "wanted", "documents_ok").Done("documents_ok"),
			workflow.Region("fraud", "unscored", "cleared").Done("cleared")).
		Joined("checking", workflow.All, "deciding", claimAuto).
		Final("closed")
}

func TestCompositeStates(t *testing.T) {
	t.Parallel()
	pool, e := started(t, func(c *engine.Config) { c.Workflows = append(c.Workflows, claims(1)) })
	on := func(transition, key string, id transitions.Receipt) transitions.Command {
		return transitions.Command{Workflow: "claim", Transition: transition, Key: key, Actor: "ann", Instance: id.Instance}
	}
	first := submit(t, e, on("file", "file-1", transitions.Receipt{}))
	other := submit(t, e, on("file", "file-2", transitions.Receipt{}))
	state := func(r transitions.Receipt) workflow.State {
		inst, err := e.Read().Instance(t.Context(), "", r.Instance)
		require.NoError(t, err)
		return inst.State
	}
	for i, c := range []struct {
		transition string
		want       workflow.State
	}{
		{"documents", "checking(documents_ok,unscored)"},
		{"suspend", "suspended;checking=documents_ok,unscored"},
		{"resume", "checking(documents_ok,unscored)"},
	} {
		submit(t, e, on(c.transition, fmt.Sprint("step-", i), first))
		assert.Equal(t, c.want, state(first), c.transition)
	}

	page, err := e.Read().Instances(t.Context(), inspect.Filter{Workflow: "claim", States: []workflow.State{"wanted"}})
	require.NoError(t, err)
	require.Len(t, page.Instances, 1, "in a state of one region")
	assert.Equal(t, other.Instance, page.Instances[0].ID)
	page, err = e.Read().Instances(t.Context(), inspect.Filter{Workflow: "claim", States: []workflow.State{"checking"}})
	require.NoError(t, err)
	assert.Len(t, page.Instances, 2)
	counts, err := e.Read().Counts(t.Context(), inspect.CountFilter{Tenant: "default", Workflow: "claim", States: []workflow.State{"unscored"}})
	require.NoError(t, err)
	assert.Len(t, counts.Counts, 2, "one count for each configuration")

	done := submit(t, e, on("score", "score-1", first))
	assert.Equal(t, workflow.State("closed"), state(first))
	again := submit(t, e, on("score", "score-1", first))
	assert.True(t, again.Replayed)
	assert.Equal(t, done.Body, again.Body)
	history, err := e.Read().History(t.Context(), "", first.Instance, 0, 0)
	require.NoError(t, err)
	require.Len(t, history, 5, "one row for each command")
	names, _ := history[4].Cause.Automatic()
	assert.Equal(t, []string{"checking_joined", "settle"}, names)
	assert.JSONEq(t, `{"steps":25}`, string(history[4].Data))
	past, err := e.Read().InstanceAt(t.Context(), "", first.Instance, 3)
	require.NoError(t, err)
	assert.Equal(t, workflow.State("suspended;checking=documents_ok,unscored"), past.State)

	sound(t, e, pool)
}
