package ops_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// bill is a workflow whose payment has no check and is settled by a bank.
type bill struct{}

type billing struct {
	Number string `json:"number" validate:"required"`
}

func bills() workflow.Source {
	none := func(*workflow.Call, *bill, workflow.None) error { return nil }
	return workflow.Define("bill", 1,
		workflow.Start("write", "open", func(*workflow.Call, *bill, billing) error { return nil }).
			BusinessKey(func(b billing) string { return b.Number }),
		workflow.Do("pay", workflow.From("open"), "paying", "paid",
			func(context.Context, *workflow.Attempt, bill, workflow.None) (string, error) {
				return "", errors.New("no answer")
			},
			func(*workflow.Call, *bill, string) error { return nil }).
			OrElse("open", func(*workflow.Call, *bill, workflow.Failure) error { return nil }).AskOperator(),
		workflow.On("settle", workflow.From("open"), "paid", none).
			Receive("bank", workflow.JSON(func(_ workflow.Message, b billing) (workflow.Address, workflow.None, error) {
				return workflow.Address{BusinessKey: b.Number}, workflow.None{}, nil
			})),
	).Final("paid")
}

func write(number string) transitions.Command {
	return transitions.Command{Workflow: "bill", Transition: "write", Key: number, Payload: []byte(`{"number":"` + number + `"}`)}
}

// unpaid has bills whose payments are stuck; a payment's key is the number of its bill.
func unpaid(t *testing.T, numbers ...string) *program {
	t.Helper()
	p := newProgram(t)
	p.serve(func(e *engine.Engine) {
		for _, number := range numbers {
			submit(t, e, write(number))
			submit(t, e, transitions.Command{Workflow: "bill", Transition: "pay", BusinessKey: number, Key: number,
				Options: transitions.Options{Scope: "till"}})
		}
		await.Eventually(t, "the payments are stuck", func() bool {
			list, _, err := e.Admin().Stuck(t.Context(), inspect.StuckFilter{})
			require.NoError(t, err)
			return len(list) == len(numbers)
		})
	})
	return p
}

func TestOpsSettlesStuckCommandsWithoutANode(t *testing.T) {
	t.Parallel()
	p := unpaid(t, "1", "2", "3")
	assert.Contains(t, p.run("resolve till 1 --by ann", "--result", `"P-1"`, "--reason", "on the statement"), `"operation":"resolve"`)
	p.has("abandon till 2 --by ann", `"operation":"abandon"`)
	p.has("retry --workflow bill --business-key 3 --by ann", `"operation":"retry"`)
	p.fails("retry --workflow bill --business-key 3", "command_not_found", "no command on this instance waits")
	p.fails("retry --workflow bill --business-key 3 till", "one argument too many")
	p.fails("retry --workflow bill", "SCOPE is missing")
	p.fails("abandon till 1", string(workflow.NotStuck))
	assert.Equal(t, "{\n  \"commands\": []\n}\n", p.run("stuck -o json"))
}

// An unset shell variable must not select the only stuck command.
func TestOps_RefusesEmptyNames(t *testing.T) {
	t.Parallel()
	p := unpaid(t, "7")
	for _, name := range []string{"abandon", "retry", "resolve", "stuck", "sinks dead s", "sinks redrive s --tenant default",
		"sinks skip s --tenant default"} {
		for _, args := range [][]string{{"--instance", ""}, {"--instance", "00000000-0000-0000-0000-000000000000"},
			{"--workflow", "bill", "--business-key", ""}, {"--workflow", "", "--instance", "01936b0e-0000-7000-8000-000000000001"}} {
			_, _, err := p.try(name, args...)
			require.Error(t, err, name, args)
			assert.Regexp(t, "--instance is not|is empty|SCOPE is missing", err.Error(), name, args)
		}
	}
	for args, name := range map[string]string{"sinks redrive s --tenant default --type": "--type", "sinks skip s --all --tenant": "--tenant",
		"pause bill --tenant": "--tenant", "keys --tenant": "--tenant", "counts --workflow": "--workflow", "show 7 --workflow": "--workflow",
		"inbox list --business-key": "--business-key", "inbox list --consumer": "--consumer", "inbox kept --id": "--id",
		"abandon till": "KEY", "show": "KEY"} {
		_, _, err := p.try(args, "")
		assert.EqualError(t, err, name+" is empty", args)
	}
	p.has("stuck", "till")
}

func TestOpsShow_Table(t *testing.T) {
	t.Parallel()
	p := unpaid(t, "7")
	wantTable(t, p.run("show 7"), `
instance      (its id)
workflow      bill, version 1
business key  7
state         paying (open), version 2
created       (a time in UTC)
updated       (a time in UTC)
in flight     pay, scope till, key 7
data          {}

stuck: an operator has to retry, resolve or abandon
since                 transition  scope  key  why              failures  failure
(a time in UTC)       pay         till   7    unknown_outcome         1  no answer

in flight
since                 transition  scope  key  status            attempt  failures  due  lease ends  node  progress
(a time in UTC)       pay         till   7    failed_retryable        1         1  -    -           -     -

timeline
at                    version  transition    from  to      actor  key  reason
(a time in UTC)             1  write         -     open    local  7    -
(a time in UTC)             2  pay.accepted  open  paying  local  7    -

audit chain: intact, 2 entries`)
	c := read[api.Case](p, "show 7 --workflow bill")
	p.has("show "+c.Instance.ID.String(), "business key  7\n")
	p.script(`UPDATE pawl.audit SET reason = 'another' WHERE version = 2`)
	p.has("show 7", "audit chain: broken at version 2: ")
}

func TestOpsShow_Selection(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	p.serve(func(e *engine.Engine) {
		submit(t, e, place(0))
		submit(t, e, write("c:0"))
		submit(t, e, write("8"))
		submit(t, e, write(`9\u001b[2J\u202e8`))
	})
	p.fails("show c:0", "instances of bill, order have this business key", "--workflow")
	p.has("show c:0 --workflow bill", "state         open (open), version 1\n")
	p.has("show c:0 --workflow order", "state         placed (open), version 1\n")
	for _, args := range []string{"nothing", "8 --workflow order", "8 --tenant other", "01936b0e-0000-7000-8000-000000000001"} {
		p.fails("show "+args, "instance_not_found")
	}
	p.fails("show 8 --workflow ordre", "workflow_not_found")
	p.fails("show", "KEY is missing")
	// Callers choose business keys; their control characters must not reach the terminal.
	got := p.run("show", "9\x1b[2J\u202e8")
	assert.NotRegexp(t, "[\x1b\u202e]", got)
	assert.Contains(t, got, "9\ufffd[2J\ufffd8")
}

func TestOpsCorrectsOneInstance(t *testing.T) {
	t.Parallel()
	p := newProgram(t, sacks()...)
	var id string
	p.serve(func(e *engine.Engine) {
		id = submit(t, e, transitions.Command{Workflow: "sack", Transition: "fill", Key: "1", Payload: []byte(`{"weight":7}`)})
	})
	about := "correct --instance " + id
	assert.Equal(t, "state shipped\ndata  {\"weight\":7}\nopen  false\n", p.run(about+" --state shipped --dry-run --reason", "seen in Graz"))
	p.has(about+` --data {"weight":8} --by ann --reason weighed`, `"version":2`)
	p.has("show "+id, `{"weight":8}`, "pawl.corrected", "weighed")
	p.fails("correct --workflow sack --business-key ZZ --state shipped --reason x", `workflow "sack" has no instance`, `"ZZ"`)
	p.fails(about+" --state shipped", "--reason")
	p.fails(about+" --reason x", "--state or --data")
	p.fails("correct --state shipped --reason x", "--instance")
	p.fails(about+" --data x --reason x", "not JSON")
	p.fails(about+" --state lost --reason x", "no such state")
}

type tin struct {
	Until time.Time `json:"until"`
}

// A correction of a date that a timer waits for is announced before the timer fires at once.
func TestOpsCorrect_OverdueTimers(t *testing.T) {
	t.Parallel()
	p := newProgram(t, workflow.Define("tin", 1,
		workflow.Start("fill", "full", func(_ *workflow.Call, d *tin, in tin) error { *d = in; return nil }).
			BusinessKey(func(tin) string { return "T-1" }),
		workflow.On("spoil", workflow.From("full"), "spoilt", func(*workflow.Call, *tin, workflow.None) error { return nil })).
		Final("spoilt").At("spoils", workflow.From("full"), func(d tin) time.Time { return d.Until }, "spoil"))
	p.serve(func(e *engine.Engine) {
		submit(t, e, transitions.Command{Workflow: "tin", Transition: "fill", Key: "1", Payload: []byte(`{"until":"2999-01-01T00:00:00Z"}`)})
	})
	const about = `correct --workflow tin --business-key T-1 --reason misread --data {"until":"2020-01-01T00:00:00Z"}`
	p.has(about+" --dry-run", "timer spoils was due at 2020-01-01T00:00:00Z, and fires at once: spoil\n")
	p.has(about, `"overdue":[{"timer":"spoils","transition":"spoil","due":"2020-01-01T00:00:00Z"`)
}
