package engine_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

type scanNotice struct {
	Label string `json:"label" validate:"required"`
}

type trunk struct {
	Scans int `json:"scans"`
}

// onNotice has a message of a type cause a transition.
func onNotice(kind string) workflow.Mapping[scanNotice] {
	return workflow.JSON(func(m workflow.Message, n scanNotice) (workflow.Address, scanNotice, error) {
		if m.Type != kind {
			return workflow.Address{}, n, workflow.ErrNotMine
		}
		return workflow.Address{BusinessKey: n.Label}, n, nil
	})
}

// trunks is a workflow that hears of its instances; from its second version on they can be scanned, and begin otherwise, too.
func trunks(version int) workflow.Source {
	take := nothing[trunk, scanNotice]
	key := func(n scanNotice) string { return n.Label }
	parts := []workflow.Part[trunk]{workflow.Start("arrive", "here", take).BusinessKey(key).
		Receive("depot", workflow.JSON(func(m workflow.Message, n scanNotice) (workflow.Address, scanNotice, error) {
			if m.Type != "arrived" {
				return workflow.Address{}, n, workflow.ErrNotMine
			}
			return workflow.Address{}, n, nil
		})), workflow.On("leave", workflow.From("here"), "gone", take).Receive("depot", onNotice("left"))}
	if version > 1 {
		parts = append(parts, workflow.On("scan", workflow.From("here"), workflow.Stay, func(_ *workflow.Call, d *trunk, _ scanNotice) error {
			d.Scans++
			return nil
		}).Receive("depot", onNotice("scanned")), workflow.Start("return", "here", take).BusinessKey(key))
	}
	return workflow.Define("trunk", version, parts...).Final("gone")
}

func fromDepot(id, kind, label string) transitions.Message {
	return transitions.Message{Consumer: "depot", ID: id, Type: kind, Body: fmt.Appendf(nil, `{"label":%q}`, label)}
}

func returned(key, label string) transitions.Command {
	return transitions.Command{Workflow: "trunk", Transition: "return", Key: key, Payload: fmt.Appendf(nil, `{"label":%q}`, label)}
}

// While another node knows a newer version, an unknown transition is a retryable refusal; when only this node is left, the refusal is
// final.
func TestNewerVersion_RetryableRefusal(t *testing.T) {
	t.Parallel()
	pool, old := started(t, running(trunks(1)))
	newer := newEngine(t, pool, running(trunks(1), trunks(2)))
	scanned := fromDepot("m", "scanned", "L-1")
	wantCode(t, errOf(old.Consume(t.Context(), scanned)), workflow.NotOnThisNode) // of no instance yet
	consumed(t, newer, fromDepot("a", "arrived", "L-1"))
	wantCode(t, errOf(old.Consume(t.Context(), scanned)), workflow.NotOnThisNode)
	wantCode(t, errOf(old.Submit(t.Context(), returned("r", "L-2"))), workflow.NotOnThisNode)
	wantCode(t, errOf(old.DryRun(t.Context(), returned("", "L-2"))), workflow.NotOnThisNode)
	replies := old.SubmitMany(t.Context(), []transitions.Command{returned("r", "L-2"),
		{Workflow: "trunk", Transition: "arrive", Key: "b", Payload: []byte(`{"label":"L-3"}`)}})
	if wantCode(t, replies[0].Err, workflow.NotOnThisNode); replies[1].Err != nil {
		t.Errorf("it holds up what this node can do: %v", replies[1].Err)
	}
	wantDead(t, old)
	consumed(t, newer, scanned)
	submit(t, newer, returned("r", "L-2"))
	for _, kind := range []string{"nobody's", "scanned"} { // a node that knows all says what nobody can do
		_, err := newer.Consume(t.Context(), fromDepot("not "+kind, kind, "L-9"))
		assert.Truef(t, !workflow.CodeOf(err).Info().Retry && err != nil, "%s: %v", kind, err)
	}

	newer.Stop(context.Background())
	wantCode(t, errOf(old.Consume(t.Context(), fromDepot("late", "nobody's", "L-1"))), workflow.MessageNotTaken)
	wantCode(t, errOf(old.Submit(t.Context(), returned("late", "L-4"))), workflow.TransitionNotFound)
}

// Instances of a version that does not begin any more, or not yet, hear as before.
func TestMessages_NewerVersionInstances(t *testing.T) {
	t.Parallel()
	e := newEngine(t, database(t), running(trunks(1), trunks(2)))
	consumed(t, e, fromDepot("1", "arrived", "L-1"))
	require.NoError(t, e.Admin().BeginVersion(t.Context(), "trunk", 1, "ann"))
	consumed(t, e, fromDepot("2", "scanned", "L-1"))
	consumed(t, e, fromDepot("3", "arrived", "L-2"))
	inst, err := e.Read().Instance(t.Context(), "", transitions.InstanceID(transitions.DefaultTenant, "trunk", "L-2"))
	assert.Truef(t, err == nil && inst.Definition == 1, "%+v, %v", inst, err)
	wantCode(t, errOf(e.Consume(t.Context(), fromDepot("4", "scanned", "L-2"))), workflow.TransitionNotFound) // version 1 has none
	consumed(t, e, fromDepot("5", "left", "L-1"))
	wantDead(t, e, "4 waiting transition_not_found 1")
}
