package fold_test

import (
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/examples/fines"
	"github.com/pawlhq/pawl/examples/fines/replay/fold"
	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// player decides the events of a case one after another, as an engine would,
// without a database.
type player struct {
	workflow *workflow.Workflow
	fine     *transitions.Instance // nil until its creation is accepted
}

// built builds the workflow once for all tests; it is immutable.
var built = sync.OnceValues(fines.Workflow.Build)

func newPlayer(t testing.TB) *player {
	t.Helper()
	w, err := built()
	require.NoError(t, err)
	return &player{workflow: w}
}

// command decides one command. The error is that of a command of which an
// engine would store nothing.
func (p *player) command(c transitions.Command) (decide.Decision, error) {
	prepared, err := decide.Prepare(c, p.workflow, uuid.New)
	if err != nil {
		return decide.Decision{}, err
	}
	d := decide.Decide(prepared, p.workflow, p.fine, time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC))
	if d.Err != nil && !d.Stored {
		return d, d.Err
	}
	if d.After != nil {
		p.fine = d.After
	}
	return d, nil
}

// event decides one event of a log, with the outcome as the fold has it.
func (p *player) event(t testing.TB, e entry) fold.Outcome {
	t.Helper()
	c, err := e.Command()
	require.NoError(t, err)
	o := fold.Outcome{Case: c.BusinessKey, Number: e.number, Transition: c.Transition, From: p.state()}
	d, err := p.command(c)
	o.To = p.state()
	assert.Truef(t, len(d.Commands) == 0,
		"case %s, event %d: a timer is set, although the office enters its penalties itself", c.BusinessKey, e.number)
	switch {
	case err != nil:
		o.Reason = string(workflow.CodeOf(err))
		assert.Truef(t, !d.Stored && o.Reason != fold.IllegalTransition,
			"case %s, event %d: %v was stored", c.BusinessKey, e.number, err)
	case d.Err == nil:
	case d.Code != 409 || d.Status != transitions.FailedFinal:
		t.Errorf("case %s, event %d: %v has the status %d %s", c.BusinessKey, e.number, d.Err, d.Code, d.Status)
	case d.Err.Code == workflow.GuardRefused:
		o.Reason = d.Err.Message
	default:
		o.Reason = string(d.Err.Code)
	}
	return o
}

func (p *player) state() fold.State {
	if p.fine == nil {
		return fold.None
	}
	return fold.State(p.fine.State)
}
