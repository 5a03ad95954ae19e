package commit

import (
	"fmt"
	"testing"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// neighbour is the workflow of another tenant, whose commands are in the same groups.
var neighbour = func() *workflow.Workflow {
	w, err := workflow.Define("neighbour", 1,
		workflow.Start("greet", "greeted", func(_ *workflow.Call, d *deal, n note) error {
			d.add("greet %s", n.Text)
			return nil
		})).Final("greeted").Build()
	if err != nil {
		panic(err)
	}
	return w
}()

// doBeside submits the commands together with one of another tenant, as one group: what
// has rows of both takes the form for many tenants.
func (b *bench) doBeside(ticket *Ticket, ps []*decide.Prepared) []transitions.Reply {
	b.t.Helper()
	b.beside++
	greeting, err := decide.Prepare(transitions.Command{Tenant: "another", Key: fmt.Sprint("greeting ", b.beside), Workflow: neighbour.Name,
		Transition: "greet", Payload: []byte(`{"text":"hello"}`)}, neighbour, uuid.New)
	if err != nil {
		b.t.Fatal(err)
	}
	ops := ticket.add(b.t.Context(), append(ps[:len(ps):len(ps)], greeting))
	if taken, _ := b.p.queue.push(ops); taken != len(ops) {
		b.t.Fatalf("there was room for %d commands of %d", taken, len(ops))
	}
	replies := ticket.Wait(b.t.Context())
	if r := replies[len(ps)]; r.Err != nil || r.Receipt.Position != int64(b.beside) {
		b.t.Errorf("the greeting has the position %d, %v; want %d", r.Receipt.Position, r.Err, b.beside)
	}
	return replies[:len(ps)]
}

// The statements for many tenants do what those for one do.
func TestConcurrentTenants(t *testing.T) {
	for name, test := range map[string]func(*testing.T){
		"accept":    TestAcceptedThenDoneIsTwoCommitsAndOneCommand,
		"wait":      TestWithoutAFreeWorkerTheCommandWaits,
		"lost":      TestALostAttemptCompletesNothing,
		"undo":      TestUnknownOutcomeIsUndone,
		"effects":   TestFailure_UndoesEffects,
		"cancel":    TestAcceptAndCancelInOneGroup,
		"timers":    TestTimersFollowTheState,
		"left":      TestATimerWhoseStateWasLeftFiresNoMore,
		"returns":   TestOneGroupThatLeavesAndReturnsArmsAnew,
		"scheduled": TestAScheduledCommandIsDecidedAtItsTime,
		"child":     TestChild_StartAndCompletion,
		"operate":   TestStuckOperations_AuditAndReplay,
		"operate 2": TestTwoOperationsOnOneCommandInOneGroup,
		"paused":    TestPausedInstance_FinishesInFlight,
	} {
		t.Run(name, test)
	}
}
