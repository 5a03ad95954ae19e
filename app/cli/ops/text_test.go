package ops_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/app/usage"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Text that PostgreSQL cannot store is a usage error, not an outage of the database.
func TestOpsTakesTextThatCannotBeStoredForAMistake(t *testing.T) {
	p := newProgram(t)
	for _, args := range [][]string{
		{"counts", "--state"}, {"counts", "--workflow"}, {"counts", "--tenant"}, {"keys", "--tenant"},
		{"show"}, {"show", "x", "--workflow"}, {"stuck", "--workflow"}, {"stuck", "--workflow", "bill", "--business-key"},
		{"abandon", "scope"}, {"abandon", "scope", "key", "--reason"}, {"abandon", "scope", "key", "--by"},
		{"pause"}, {"pause", "bill", "--reason"}, {"pause", "bill", "--by"}, {"resume"},
		{"sinks", "show"}, {"sinks", "pause"}, {"sinks", "pause", "s", "--reason"}, {"sinks", "resume"}, {"sinks", "forget"},
		{"sinks", "move", "--to", "1"}, {"sinks", "dead"}, {"sinks", "dead", "s", "--type"}, {"sinks", "dead", "s", "--status"},
		{"sinks", "dead", "s", "--workflow"}, {"sinks", "dead", "s", "--tenant", "default", "--workflow", "bill", "--business-key"},
		{"sinks", "redrive", "s", "--type"}, {"sinks", "redrive", "s", "--all", "--by"}, {"sinks", "skip", "s", "--all", "--reason"},
		{"inbox", "kept", "--consumer"}, {"inbox", "kept", "--consumer", "bank", "--id"}, {"inbox", "raw", "bank"},
		{"inbox", "list", "--consumer"}, {"inbox", "body", "bank"}, {"inbox", "retry", "bank"}, {"inbox", "discard", "bank", "id", "--reason"},
	} {
		for _, text := range []string{"a\xff", "a\x00"} {
			_, _, err := p.try(args[0], append(args[1:len(args):len(args)], text)...)
			_, mistake := errors.AsType[*usage.Error](err)
			if code := workflow.CodeOf(err); err == nil || !mistake && (code == workflow.Unavailable || code == workflow.Internal || code == "") {
				t.Errorf("%q %q: %v", args, text, err)
			}
		}
	}
}

// Callers choose business keys, and an operator's terminal must not obey them.
func TestOpsShowsNothingThatATerminalObeys(t *testing.T) {
	p := newProgram(t)
	p.serve(func(e *engine.Engine) {
		submit(t, e, transitions.Command{Workflow: "bill", Transition: "write", Key: "k",
			Payload: []byte(`{"number":"7\u001b[2J\u202e8"}`)})
	})
	got := p.run("show", "7\x1b[2J\u202e8")
	assert.Truef(t, !strings.ContainsAny(got, "\x1b\u202e") && strings.Contains(got, "7\ufffd[2J\ufffd8"), "%q", got)
}
