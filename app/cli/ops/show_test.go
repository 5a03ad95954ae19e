package ops_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/transitions"
)

// unpaid is a bill whose payment is stuck.
func unpaid(t *testing.T, number string) *program {
	t.Helper()
	p := newProgram(t)
	p.serve(func(e *engine.Engine) {
		submit(t, e, write(number))
		submit(t, e, transitions.Command{Workflow: "bill", Transition: "pay", BusinessKey: number, Key: "1",
			Options: transitions.Options{Scope: "till"}})
		await.Eventually(t, "the payment is stuck", func() bool {
			list, _, err := e.Admin().Stuck(t.Context(), inspect.StuckFilter{})
			require.NoError(t, err)
			return len(list) == 1
		})
	})
	return p
}

func TestOpsShowTellsTheWholeOfACase(t *testing.T) {
	p := unpaid(t, "7")
	wantTable(t, p.run("show 7"), `
instance      (its id)
workflow      bill, version 1
business key  7
state         paying (open), version 2
created       (a time in UTC)
updated       (a time in UTC)
in flight     pay, scope till, key 1
data          {}

stuck: an operator has to retry, resolve or abandon
since                 transition  scope  key  why              failures  failure
(a time in UTC)       pay         till   1    unknown_outcome         1  no answer

in flight
since                 transition  scope  key  status            attempt  failures  due  lease ends  node  progress
(a time in UTC)       pay         till   1    failed_retryable        1         1  -    -           -     -

timeline
at                    version  transition    from  to      actor  key  reason
(a time in UTC)             1  write         -     open    local  7    -
(a time in UTC)             2  pay.accepted  open  paying  local  1    -

audit chain: intact, 2 entries`)
	var c api.Case
	err := json.Unmarshal([]byte(p.run("show 7 -o json --workflow bill")), &c)
	require.Truef(t, err == nil && c.Instance.State == "paying" && len(c.Instance.Stuck) == 1 && len(c.InFlight) == 1 &&
		len(c.Timeline) == 2 && c.Chain.Intact,
		"%+v, %v", c, err)
	assert.Contains(t, p.run("show "+c.Instance.ID.String()), "business key  7\n")
	p.script(`UPDATE pawl.audit SET reason = 'another' WHERE version = 2`)
	assert.Contains(t, p.run("show 7"), "audit chain: broken at version 2: ")
}

func TestOpsShowFindsTheCase(t *testing.T) {
	p := newProgram(t)
	p.serve(func(e *engine.Engine) {
		submit(t, e, place(0))
		submit(t, e, write("c:0"))
		submit(t, e, write("8"))
	})
	p.fails("show c:0", "instances of bill, order have this business key", "--workflow")
	for workflow, state := range map[string]string{"bill": "open", "order": "placed"} {
		assert.Contains(t, p.run("show c:0 --workflow "+workflow), fmt.Sprintf("state         %s (open), version 1\n", state))
	}
	p.fails("show nothing", "instance_not_found")
	p.fails("show 8 --workflow order", "instance_not_found")
	p.fails("show 8 --tenant other", "instance_not_found")
	p.fails("show 8 --workflow ordre", "workflow_not_found")
	p.fails("show 01936b0e-0000-7000-8000-000000000001", "instance_not_found")
	p.fails("show", "KEY is missing")
	_, _, err := p.try("show", "")
	assert.EqualError(t, err, "KEY is empty", "an empty key")
}
