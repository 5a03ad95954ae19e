package pawltest_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/pawlhq/pawl/pawltest"
	"github.com/pawlhq/pawl/workflow"
)

// A help desk, as docs/what-a-workflow-can-say.md shows it.

type Ticket struct {
	Texts []string `json:"texts,omitempty"`
}

type Letter struct {
	Text string `json:"text,omitempty"`
}

type Receipt string

const (
	Open    workflow.State = "open"
	Waiting workflow.State = "waiting"
	Posting workflow.State = "posting"
	Phoning workflow.State = "phoning"
	Closed  workflow.State = "closed"
)

var desk = workflow.Define("desk", 1,
	workflow.Start("write", Open, keep),
	workflow.On("write", workflow.From(Open, Waiting), Open, keep),
	workflow.Do("answer", workflow.From(Open), Posting, Waiting, post, posted).OrElse(workflow.Stay, notAnswered).AskOperator(),
	workflow.Do("answer", workflow.From(Waiting), Phoning, workflow.Stay, phone, posted).OrElseFrom(notReached, notAnswered),
	workflow.On("draft", workflow.From(Open), workflow.Stay, keep),
	workflow.On("approve", workflow.From(Open), Waiting, keep).NotByLast("draft"),
	workflow.On("close", workflow.From(Open, Waiting), Closed, keep).NotBy("answer"),
	workflow.On("forget", workflow.From(Waiting), Closed, keep),
).Final(Closed).After("silence", workflow.From(Waiting), 14*24*time.Hour, "forget")

func keep(_ *workflow.Call, t *Ticket, l Letter) error {
	t.Texts = append(t.Texts, l.Text)
	return nil
}

func post(context.Context, *workflow.Attempt, Ticket, Letter) (Receipt, error) {
	_, err := net.Dial("tcp", "the post office")
	if refused, ok := errors.AsType[*net.OpError](err); ok && refused.Op == "dial" {
		return "", workflow.NotDone(err) // the letter was not sent
	}
	return "", err
}

func phone(context.Context, *workflow.Attempt, Ticket, Letter) (Receipt, error) {
	return "", workflow.Final(errors.New("the number is not assigned"))
}

func posted(_ *workflow.Call, t *Ticket, r Receipt) error {
	t.Texts = append(t.Texts, string(r))
	return nil
}

func notReached(workflow.State) workflow.State { return Open }

func notAnswered(*workflow.Call, *Ticket, workflow.Failure) error { return nil }

func Example_whatAWorkflowCanSay() {
	sim := pawltest.Run(pawltest.Example, desk)
	t := sim.Start("desk", "write", Letter{"It does not ring"})
	t.As("ann").Do("write", Letter{"still not"}) // the same name, on the ticket

	t.As("bob").Do("answer", Letter{"which one?"})
	sim.Settle() // no post office: it is tried again, and no operator is asked
	fmt.Println(t.State(), len(sim.Stuck()))
	sim.Skip(time.Hour)
	_, err := t.As("bob").Try("close", nil)
	fmt.Println(t.State(), err) // nothing was sent, so he has not answered

	t = sim.Start("desk", "write", Letter{"Nor does mine"})
	t.As("ann").Do("draft", Letter{"Is it plugged in?"})
	t.As("bob").Do("draft", Letter{"Is it plugged in, please?"})
	_, err = t.As("bob").Try("approve", nil)
	fmt.Println(err)
	t.As("ann").Do("approve", nil) // bob was the last to change it
	t.As("ann").Do("answer", Letter{"hello?"})
	sim.Settle()
	fmt.Println(t.State(), t.Steps())
	// Output:
	// posting 0
	// closed <nil>
	// separation_of_duties: "approve" and the last "draft" must be done by different actors
	// open [write draft draft approve answer.accepted answer.failed]
}
