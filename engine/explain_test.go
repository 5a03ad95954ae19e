package engine_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func TestExplainSaysWhatAnActorCanDoNowAndWhyNot(t *testing.T) {
	t.Parallel()
	e := newEngine(t, database(t))
	submit(t, e, applied("L-1", 100)) // by ann
	allowed := func(actor string, roles ...string) map[string]workflow.Code {
		t.Helper()
		options, err := e.Read().Explain(t.Context(), "", loanID("L-1"), actor, roles)
		require.NoError(t, err)
		out := map[string]workflow.Code{}
		for _, o := range options.Transitions {
			out[o.Transition] = ""
			if !o.Allowed {
				out[o.Transition] = o.Reasons[len(o.Reasons)-1].Code
			}
		}
		return out
	}
	for _, tt := range []struct {
		name string
		got  map[string]workflow.Code
		want workflow.Code // of forgive
	}{
		{"anybody", allowed("bob"), workflow.RoleRequired},
		{"the boss", allowed("bob", "boss"), ""},
		{"who applied", allowed("ann", "boss"), workflow.SeparationOfDuties},
		{"every role", allowed("bob", transitions.AnyRole), ""},
	} {
		assert.Equal(t, map[string]workflow.Code{"pay": "", "book": "", "forgive": tt.want}, tt.got, tt.name)
	}
	submit(t, e, on("pay", "L-1", "p", 100, ""))
	want := map[string]workflow.Code{"pay": workflow.IllegalTransition, "book": workflow.IllegalTransition,
		"forgive": workflow.IllegalTransition}
	assert.Equal(t, want, allowed("bob", "boss"), "settled")
}

func TestExplainNeedsTheVersionOfTheInstance(t *testing.T) {
	t.Parallel()
	pool := database(t)
	submit(t, newEngine(t, pool), applied("L-1", 100))
	e := newEngine(t, pool, func(c *engine.Config) { c.Workflows = []workflow.Source{loans(2)} })
	_, err := e.Read().Explain(t.Context(), "", loanID("L-1"), "bob", nil)
	wantCode(t, err, workflow.NotOnThisNode)
	_, err = e.Read().Explain(t.Context(), "", uuid.New(), "bob", nil)
	wantCode(t, err, workflow.InstanceNotFound)
}
