package bench

import (
	"context"
	"fmt"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// desk is the consumer whose messages flip orders.
const desk = "desk"

// heldMessage is the body of a message to the desk.
type heldMessage struct {
	Order string `json:"order" validate:"required"`
	changePayload
}

// fromDesk makes a flip of a message.
var fromDesk = workflow.JSON(func(_ workflow.Message, m heldMessage) (workflow.Address, changePayload, error) {
	return workflow.Address{BusinessKey: m.Order}, m.changePayload, nil
})

// consuming is a scenario of callers that hand over one message after the other,
// each of which flips an order that no other caller touches.
func consuming(name, floor string, callers int) *scenario {
	return engineScenario(name, floor, callers, false, func(e *env, eng *engine.Engine, number int) caller {
		own := share(e.orders, number-firstCaller, callers)
		n := 0
		return func(ctx context.Context) (int, error) {
			o := &own[n%len(own)]
			m := transitions.Message{Consumer: desk, ID: commandKey(number, n), Type: "order.held", Delivery: 1,
				Body: fmt.Appendf(nil, `{"order":"%s",%s`, o.key, changeJSON[1:])}
			n++
			r, err := eng.Consume(ctx, m)
			return 1, check(r, err, false)
		}
	})
}
