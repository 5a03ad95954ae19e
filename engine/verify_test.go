package engine_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/transitions"
)

// intact has every chain of the default tenant checked.
func intact(t testing.TB, e *engine.Engine) {
	t.Helper()
	v, err := e.Admin().Verify(t.Context(), "", uuid.Nil)
	assert.Truef(t, err == nil && len(v.Broken) == 0, "verify: %+v, %v", v.Broken, err)
}

// A change of the instance's row can permit an operator a forbidden transition. Verify reports it before and after that transition.
func TestVerify_RemovedEffects(t *testing.T) {
	t.Parallel()
	pool, e := started(t)
	forgive := transitions.Command{Workflow: "loan", Transition: "forgive", BusinessKey: "L-1", Key: "f-1", Actor: "ann",
		Roles: []string{"boss"}, Payload: []byte(`{}`)}
	submit(t, e, applied("L-1", 100))
	submit(t, e, applied("L-2", 100))
	_, err := e.Submit(t.Context(), forgive)
	require.Error(t, err, "who applied may forgive")
	check := func(when string, version int64, says string) {
		t.Helper()
		for _, id := range []uuid.UUID{uuid.Nil, loanID("L-1")} {
			v, err := e.Admin().Verify(t.Context(), "", id)
			assert.Truef(t, err == nil && len(v.Broken) == 1 && v.Broken[0].Instance == loanID("L-1") && v.Broken[0].Version == version &&
				strings.Contains(v.Broken[0].Reason, says), "%s: got %+v, %v", when, v, err)
		}
	}
	exec(t, pool, "UPDATE pawl.instance SET actors = NULL WHERE id = $1", loanID("L-1"))
	check("before", 1, "attributes, actors or effects (in links) are not what its rows say")
	r := submit(t, e, forgive)
	require.False(t, r.Refused(), string(r.Body))
	check("after", 2, "the instance before this transition")
	exec(t, pool, `UPDATE pawl.instance SET actors = '{"apply":["ann"]}' WHERE id = $1`, loanID("L-1"))
	check("with the actors put back", 2, "the instance before this transition")
}

// The command that an instance waits for is in no hash; its rows show it.
func TestVerify_WrongCommand(t *testing.T) {
	t.Parallel()
	pool, e := started(t, with(letters(1, hourly, nil)), func(c *engine.Config) { c.InFlight.Workers = -1 })
	id := submit(t, e, written("w", "x")).Instance
	submit(t, e, posted(id, "p"))
	intact(t, e)
	for _, links := range []string{"NULL", `'{"in_flight":{"transition":"post","scope":"s","key":"other"}}'`,
		`'{"in_flight":{"transition":"write","scope":"s","key":"p"}}'`, `'{"in_flight":{"transition":"post","scope":"pawl:late:x","key":"2"}}'`} {
		exec(t, pool, "UPDATE pawl.instance SET links = "+links)
		v, err := e.Admin().Verify(t.Context(), "", id)
		assert.Truef(t, err == nil && len(v.Broken) == 1 && v.Broken[0].Version == 2 &&
			v.Broken[0].Reason == "the instance's command in flight (in links) is not what its rows say", "%s: got %+v, %v", links, v, err)
	}
}
