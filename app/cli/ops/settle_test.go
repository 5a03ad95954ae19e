package ops_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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

func TestOpsSettlesStuckCommandsWithoutANode(t *testing.T) {
	p := newProgram(t)
	p.serve(func(e *engine.Engine) {
		for _, number := range []string{"1", "2", "3"} {
			submit(t, e, write(number))
			submit(t, e, transitions.Command{Workflow: "bill", Transition: "pay", BusinessKey: number, Key: number,
				Options: transitions.Options{Scope: "till"}})
		}
		await.Eventually(t, "three commands are stuck", func() bool {
			list, _, err := e.Admin().Stuck(t.Context(), inspect.StuckFilter{})
			require.NoError(t, err)
			return len(list) == 3
		})
	})
	for _, step := range []struct {
		args []string
		says string
	}{
		{[]string{"resolve till 1 --by ann", "--result", `"P-1"`, "--reason", "it is on the statement"}, `"operation":"resolve"`},
		{[]string{"abandon till 2 --by ann"}, `"operation":"abandon"`},
		{[]string{"retry --workflow bill --business-key 3 --by ann"}, `"operation":"retry"`},
	} {
		assert.Contains(t, p.run(step.args[0], step.args[1:]...), step.says, step.args)
	}
	p.fails("retry --workflow bill --business-key 3", "command_not_found", "no command on this instance waits")
	p.fails("retry --workflow bill --business-key 3 till", "one argument too many")
	p.fails("retry --workflow bill", "SCOPE is missing")
	p.fails("abandon till 1", string(workflow.NotStuck))
	assert.Equal(t, "{\n  \"commands\": []\n}\n", p.run("stuck -o json"), "still stuck")
}

// A variable of the shell that is not set must not name the only command that is
// stuck, of whomever.
func TestOpsSettlesNothingForAnEmptyName(t *testing.T) {
	p := unpaid(t, "7")
	empty := [][]string{{"--instance", ""}, {"--instance", "00000000-0000-0000-0000-000000000000"},
		{"--workflow", "bill", "--business-key", ""}, {"--workflow", "", "--instance", "01936b0e-0000-7000-8000-000000000001"}}
	for _, name := range []string{"abandon", "retry", "resolve", "stuck", "sinks dead s", "sinks redrive s --tenant default",
		"sinks skip s --tenant default"} {
		for _, args := range empty {
			stdout, _, err := p.try(name, args...)
			assert.Truef(t, err != nil && (strings.Contains(err.Error(), "--instance is not") ||
				strings.Contains(err.Error(), "is empty") || strings.Contains(err.Error(), "SCOPE is missing")),
				"%s %q: %v, %s", name, args, err, stdout)
		}
	}
	for _, args := range []string{"sinks redrive s --tenant default --type", "sinks skip s --all --tenant", "pause bill --tenant",
		"keys --tenant", "counts --workflow", "show 7 --workflow", "inbox list --business-key", "inbox list --consumer", "inbox kept --id"} {
		flag := args[strings.LastIndex(args, "--"):]
		_, _, err := p.try(args, "")
		assert.EqualError(t, err, flag+" is empty", args)
	}
	_, _, err := p.try("abandon", "till", "")
	assert.EqualError(t, err, "KEY is empty")
	assert.Contains(t, p.run("stuck"), "till", "it was settled")
}
