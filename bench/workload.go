package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// The measured workflow: an order that goes on hold and returns, so that an instance can be used indefinitely and every transition changes
// the state, including its index entry. Only "note" stays in its state, for the scenarios in which many callers share one instance.
const (
	workflowName = "order"
	placing      = "place"
	flipping     = "flip"
	noting       = "note"
	asking       = "ask"

	statePlaced workflow.State = "placed"
	stateHeld   workflow.State = "held"
	stateAsking workflow.State = "asking"
	stateClosed workflow.State = "closed"
)

const (
	tenant = transitions.DefaultTenant
	actor  = "clerk-17"
)

type orderData struct {
	Customer string `json:"customer"`
	Cart     string `json:"cart"`
	Total    int64  `json:"total"`
	Currency string `json:"currency"`
	Address  string `json:"address"`
	Note     string `json:"note"`
	By       string `json:"by"`
}

type placePayload struct {
	Customer string `json:"customer" validate:"required,max=100"`
	Cart     string `json:"cart" validate:"required,max=100"`
	Total    int64  `json:"total" validate:"gt=0"`
	Currency string `json:"currency" validate:"required,iso4217"`
	Address  string `json:"address" validate:"required,max=200"`
}

type changePayload struct {
	Note string `json:"note" validate:"required,max=200"`
	By   string `json:"by" validate:"required,max=50"`
	Desk int    `json:"desk" validate:"gte=0"`
}

var definition = orders(1, askNothing)

// orders are the measured workflow, in one of two versions that differ in nothing else.
func orders(version int, ask func(context.Context, *workflow.Attempt, orderData, changePayload) (askResult, error),
) *workflow.Definition[orderData] {
	return workflow.Define(workflowName, version,
		workflow.Start(placing, statePlaced, func(_ *workflow.Call, o *orderData, p placePayload) error {
			o.Customer, o.Cart, o.Total, o.Currency, o.Address = p.Customer, p.Cart, p.Total, p.Currency, p.Address
			return nil
		}).BusinessKey(func(p placePayload) string { return p.Customer + ":" + p.Cart }),
		workflow.On(flipping, workflow.From(statePlaced, stateHeld), stateHeld, func(c *workflow.Call, o *orderData, p changePayload) error {
			o.Note, o.By = p.Note, p.By
			c.Goto(flipped(c.State()))
			return nil
		}).Or(statePlaced).Receive(desk, fromDesk),
		workflow.On(noting, workflow.From(statePlaced, stateHeld), workflow.Stay, func(_ *workflow.Call, o *orderData, p changePayload) error {
			o.Note, o.By = p.Note, p.By
			return nil
		}),
		workflow.Do(asking, workflow.From(statePlaced, stateHeld), stateAsking, stateHeld, ask,
			func(_ *workflow.Call, o *orderData, r askResult) error {
				o.Note = r.Answer
				return nil
			}).OrElse(statePlaced, func(*workflow.Call, *orderData, workflow.Failure) error { return nil }),
		workflow.On("close", workflow.From(statePlaced, stateHeld), stateClosed,
			func(*workflow.Call, *orderData, workflow.None) error { return nil }),
	).Final(stateClosed)
}

// desk is the consumer whose messages flip orders.
const desk = "desk"

// fromDesk makes a flip of a message.
var fromDesk = workflow.JSON(func(_ workflow.Message, m heldMessage) (workflow.Address, changePayload, error) {
	return workflow.Address{BusinessKey: m.Order}, m.changePayload, nil
})

// heldMessage is the body of a message to the desk.
type heldMessage struct {
	Order string `json:"order" validate:"required"`
	changePayload
}

// askNothing is an activity that does nothing outside.
func askNothing(context.Context, *workflow.Attempt, orderData, changePayload) (askResult, error) {
	return askResult{Answer: "yes"}, nil
}

type askResult struct {
	Answer string `json:"answer"`
}

func flipped(s workflow.State) workflow.State {
	if s == statePlaced {
		return stateHeld
	}
	return statePlaced
}

const changeJSON = `{"by":"` + actor + `","desk":42,"note":"the customer asked on the phone to have it ` +
	`delivered a week later, to the neighbours on the left hand"}`

// order is an instance as the callers know it.
type order struct {
	tenant string
	id     uuid.UUID
	key    string // the business key
}

// orderAt is the n-th order. Its numbers are of fixed width, so that all rows
// are of one size.
func orderAt(n int) order { return orderOf(tenant, n) }

// orderOf is the n-th order, of a tenant.
func orderOf(tenant string, n int) order {
	key := fmt.Sprintf("c-%010d:k-%010d", n/3, n)
	return order{tenant: tenant, id: transitions.InstanceID(tenant, workflowName, key), key: key}
}

// placeAt is the command that creates the n-th order.
func placeAt(n int) transitions.Command {
	return transitions.Command{Workflow: workflowName, Transition: placing, Key: commandKey(0, n), Actor: actor,
		Payload: fmt.Appendf(nil, `{"address":"221b Baker Street, London NW1 6XE","cart":"k-%010d",`+
			`"currency":"EUR","customer":"c-%010d","total":129900}`, n, n/3)}
}

func change(transition string, o *order, key string) transitions.Command {
	return transitions.Command{Tenant: o.tenant, Workflow: workflowName, Transition: transition, Instance: o.id, Key: key, Actor: actor,
		Payload: []byte(changeJSON)}
}

// commandKey is an idempotency key of a UUID's length. No two callers, and no
// two of a caller's commands, have the same.
func commandKey(caller, n int) string {
	return fmt.Sprintf("7d0c1a52-4e3b-8f00-%04d-%012d", caller, n)
}

// A specimen is what the engine stores for one change. The floor and the
// ceiling write the same without deciding anything.
type specimen struct {
	payload, data []byte
	eventType     string
}

func newSpecimen(transition string) (*specimen, error) {
	w, err := definition.Build()
	if err != nil {
		return nil, err
	}
	now := time.Now().UTC().Truncate(time.Microsecond)
	var d decide.Decision
	o := orderAt(1)
	for _, c := range []transitions.Command{placeAt(1), change(transition, &o, commandKey(1, 1))} {
		p, err := decide.Prepare(c, w, uuid.New)
		if err != nil {
			return nil, err
		}
		if d = decide.Decide(p, w, d.After, now); d.Err != nil {
			return nil, d.Err
		}
	}
	return &specimen{payload: d.Entry.Payload, data: d.Entry.Data, eventType: d.Events[0].Type}, nil
}
