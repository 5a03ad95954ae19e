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
func TestOps_RefusesInvalidText(t *testing.T) {
	p := newProgram(t)
	for _, args := range [][]string{
		{"counts", "--state"}, {"keys", "--tenant"}, {"show"}, {"abandon", "scope"}, {"abandon", "scope", "key", "--reason"},
		{"abandon", "scope", "key", "--by"}, {"pause", "bill", "--by"}, {"sinks", "move", "s", "--to", "1", "--reason"}, {"inbox", "raw", "bank"},
		{"inbox", "discard", "bank", "id", "--hash"},
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
func TestOpsShow_EscapesControlCharacters(t *testing.T) {
	p := newProgram(t)
	p.serve(func(e *engine.Engine) {
		submit(t, e, transitions.Command{Workflow: "bill", Transition: "write", Key: "k",
			Payload: []byte(`{"number":"7\u001b[2J\u202e8"}`)})
	})
	got := p.run("show", "7\x1b[2J\u202e8")
	assert.Truef(t, !strings.ContainsAny(got, "\x1b\u202e") && strings.Contains(got, "7\ufffd[2J\ufffd8"), "%q", got)
}
