package watermill_test

import (
	"context"
	"fmt"

	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"
	"github.com/google/uuid"

	"github.com/pawlhq/pawl/outbox/sink/watermill"
	"github.com/pawlhq/pawl/transitions"
)

// Any publisher works; this one passes messages within the process.
func Example() {
	pubsub := gochannel.NewGoChannel(gochannel.Config{OutputChannelBuffer: 1}, nil)
	out, err := watermill.New(watermill.Config{
		Publisher: pubsub,
		Topic:     func(e *transitions.Event) string { return "cases-" + e.Workflow },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	defer out.Close(ctx)
	messages, err := pubsub.Subscribe(ctx, "cases-order")
	if err != nil {
		fmt.Println(err)
		return
	}
	event := transitions.Event{Tenant: "default", Position: 7, Type: "order.place", Workflow: "order", Instance: uuid.New(),
		Payload: []byte(`{}`)}
	failures := out.Deliver(ctx, []transitions.Logged{{Event: event, CloudEvent: event.AppendCloudEvent(nil)}})
	fmt.Println("failures:", len(failures))
	m := <-messages
	m.Ack()
	fmt.Println(m.UUID, m.Metadata.Get("ce-type"), m.Metadata.Get("ce-id"))
	// Output:
	// failures: 0
	// 9c884c3b-567d-562a-8122-8f5f2165e1dd order.place 7-0
}
