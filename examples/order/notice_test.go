package order_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/examples/order"
	"github.com/pawlhq/pawl/examples/order/provider"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/pawltest"
	"github.com/pawlhq/pawl/transitions"
)

// notice is a webhook as the provider sends it.
func notice(id, kind, reference string) transitions.Message {
	return transitions.Message{Consumer: order.PaymentNotices, ID: id,
		Body: fmt.Appendf(nil, `{"type":%q,"timestamp":"2026-01-02T12:00:00Z",
			"data":{"reference":%q,"reason":"left the page","amount":1000}}`, kind, reference)}
}

func TestAbandonedPayment_CancelsOnce(t *testing.T) {
	t.Parallel()
	e := pawltest.Engine(t, order.Workflow(provider.New()))
	if _, err := e.Submit(t.Context(), transitions.Command{Workflow: "order", Transition: "place", Key: "k",
		Payload: []byte(`{"customer":"c-1","cart":"k-1","total":1000,"currency":"EUR"}`)}); err != nil {
		t.Fatal(err)
	}
	if r, err := e.Consume(t.Context(), notice("n-1", "charge.succeeded", "c-1:k-1")); err != nil || r.Status != 200 {
		t.Errorf("another notice: %+v, %v", r, err)
	}
	var senders sync.WaitGroup
	for range 10 {
		senders.Go(func() {
			r, err := e.Consume(t.Context(), notice("n-2", "payment.abandoned", "c-1:k-1"))
			assert.Truef(t, err == nil && r.Status == 200 && r.Version == 2, "got %+v, %v", r, err)
		})
	}
	senders.Wait()
	inst, err := e.Read().InstanceByKey(t.Context(), "", "order", "c-1:k-1")
	assert.Truef(t, err == nil && inst.State == order.Cancelled && inst.Version == 2, "the order is %+v, %v", inst, err)
	history, err := e.Read().History(t.Context(), "", inst.ID, 1, 10)
	assert.Truef(t, err == nil && len(history) == 1 && history[0].Reason == "left the page" && history[0].Actor == "inbox:payments",
		"the history is %+v, %v", history, err)
	list, _, err := e.Admin().DeadMessages(t.Context(), inspect.DeadMessageFilter{})
	assert.Truef(t, err == nil && len(list) == 0, "dead are %+v, %v", list, err)
}
