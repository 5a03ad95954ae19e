package pawl

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/pgtest"
	"github.com/pawlhq/pawl/schema"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// bill is a workflow whose payment nobody can ask about, and that a bank settles.
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
			OrElse("open", func(*workflow.Call, *bill, workflow.Failure) error { return nil }).AskPerson(),
		workflow.On("settle", workflow.From("open"), "paid", none).
			Receive("bank", workflow.JSON(func(_ workflow.Message, b billing) (workflow.Address, workflow.None, error) {
				return workflow.Address{BusinessKey: b.Number}, workflow.None{}, nil
			})),
	).Final("paid")
}

// onBills works with an engine with the bills on a database of its own.
func onBills(t *testing.T, work func(e *engine.Engine)) (url string) {
	t.Helper()
	url = pgtest.URL(t)
	d, err := openDatabase(t.Context(), url, quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := schema.Migrate(t.Context(), d.pool, schema.Default); err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(engine.Config{Pool: d.pool, Workflows: []workflow.Source{bills()}, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer e.Stop(t.Context())
	work(e)
	return url
}

func mustSubmit(t *testing.T, e *engine.Engine, c transitions.Command) {
	t.Helper()
	r, err := e.Submit(t.Context(), c)
	if err == nil {
		err = r.Err()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func write(number string) transitions.Command {
	return transitions.Command{Workflow: "bill", Transition: "write", Key: number, Payload: []byte(`{"number":"` + number + `"}`)}
}

// opsOver runs a command of an operator in the program with the bills.
func opsOver(t *testing.T, url string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return runOver(t.Context(), []workflow.Source{bills()}, append([]string{"ops", "--database", url}, args...)...)
}

func TestOpsSettlesStuckCommandsWithoutANode(t *testing.T) {
	url := onBills(t, func(e *engine.Engine) {
		for _, number := range []string{"1", "2", "3"} {
			mustSubmit(t, e, write(number))
			mustSubmit(t, e, transitions.Command{Workflow: "bill", Transition: "pay", BusinessKey: number, Scope: "till", Key: number})
		}
		for {
			list, _, err := e.Stuck(t.Context(), transitions.StuckFilter{})
			if err != nil {
				t.Fatal(err)
			}
			if len(list) == 3 {
				return
			}
			time.Sleep(10 * time.Millisecond) // between two looks
		}
	})
	for _, step := range []struct {
		args []string
		says string
	}{
		{[]string{"resolve", "till", "1", "--result", `"P-1"`, "--by", "ann", "--reason", "it is on the statement"}, `"operation":"resolve"`},
		{[]string{"abandon", "till", "2", "--by", "ann"}, `"operation":"abandon"`},
		{[]string{"retry", "till", "3", "--by", "ann"}, `"operation":"retry"`},
	} {
		if code, stdout, stderr := opsOver(t, url, step.args...); code != 0 || !strings.Contains(stdout, step.says) {
			t.Errorf("%v: exit %d, %s%s", step.args, code, stdout, stderr)
		}
	}
	code, _, stderr := opsOver(t, url, "abandon", "till", "1")
	if code != 1 || !strings.Contains(stderr, string(workflow.NotStuck)) {
		t.Errorf("exit %d, %s", code, stderr)
	}
	var list []stuckCommand
	_, stdout, _ := opsOver(t, url, "stuck", "--json")
	if err := json.Unmarshal([]byte(stdout), &list); err != nil || len(list) != 0 {
		t.Errorf("still stuck: %s, %v", stdout, err)
	}
}

func TestOpsInboxSeesToMessagesThatWereNotConsumed(t *testing.T) {
	url := onBills(t, func(e *engine.Engine) {
		for id, body := range map[string]string{"m-1": `{"number":"7"}`, "m-2": `{"number":""}`} {
			_, _ = e.Consume(t.Context(), transitions.Message{Consumer: "bank", ID: id, Type: "paid", Body: []byte(body), Delivery: 100})
		}
		_, _ = e.Consume(t.Context(), transitions.Message{Consumer: "bank", ID: "m-4", Body: make([]byte, transitions.MaxMessage+1)})
		mustSubmit(t, e, write("7")) // too late for m-1
	})
	code, stdout, stderr := opsOver(t, url, "inbox", "list")
	if code != 0 || strings.Count(stdout, " bank ") != 3 || !strings.Contains(stdout, "invalid_payload") {
		t.Errorf("exit %d\n%s%s", code, stdout, stderr)
	}
	for _, step := range []struct{ args, says string }{
		{"inbox body bank m-1", `{"number":"7"}`},
		{"inbox retry bank m-1 --by ann", "bank m-1: consumed\n"},
		{"inbox discard bank m-2 --by ann --reason test", "bank m-2: discarded\n"},
		{"inbox discard bank m-4 --by ann", "bank m-4: discarded\n"},
		{"inbox list --json", "[]\n"},
	} {
		if code, stdout, stderr := opsOver(t, url, strings.Fields(step.args)...); code != 0 || stdout != step.says {
			t.Errorf("%s: exit %d, %s%s", step.args, code, stdout, stderr)
		}
	}
	for _, action := range []string{"retry", "body"} {
		if code, _, stderr := opsOver(t, url, "inbox", action, "bank", "m-4"); code != 1 || !strings.Contains(stderr, "has 1048577 bytes") {
			t.Errorf("%s: exit %d, %s", action, code, stderr)
		}
	}
	if code, _, stderr := opsOver(t, url, "inbox", "retry", "bank", "m-3"); code != 1 || !strings.Contains(stderr, "there is no such message") {
		t.Errorf("exit %d, %s", code, stderr)
	}
	if code, _, stderr := opsOver(t, url, "inbox", "retry", "bank", "m-2"); code != 1 || !strings.Contains(stderr, "invalid_payload: ") || !strings.Contains(stderr, "; /number: ") {
		t.Errorf("exit %d, %s", code, stderr)
	}
}
