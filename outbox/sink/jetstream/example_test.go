package jetstream_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	upstream "github.com/nats-io/nats.go/jetstream"

	"github.com/pawlhq/pawl/outbox/sink/jetstream"
	"github.com/pawlhq/pawl/outbox/sink/natstest"
	"github.com/pawlhq/pawl/transitions"
)

// The first delivery creates the stream. A repeated event is stored once.
func Example() {
	folder, err := os.MkdirTemp("", "jetstream")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)
	server, err := natstest.New(folder)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Down()

	out, err := jetstream.New(jetstream.Config{URL: server.URL(), Stream: "ORDERS", Subject: "orders.{tenant}.{type}",
		MaxAge: 7 * 24 * time.Hour})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	defer out.Close(ctx)
	event := transitions.Event{Tenant: "default", Position: 7, Type: "order.place", Instance: uuid.New(), Payload: []byte(`{}`)}
	for range 2 {
		failures := out.Deliver(ctx, []transitions.Logged{{Event: event, CloudEvent: event.AppendCloudEvent(nil)}})
		fmt.Println("failures:", len(failures))
	}

	conn, err := nats.Connect(server.URL())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	js, err := upstream.New(conn)
	if err != nil {
		fmt.Println(err)
		return
	}
	stream, err := js.Stream(ctx, "ORDERS")
	if err != nil {
		fmt.Println(err)
		return
	}
	message, err := stream.GetLastMsgForSubject(ctx, "orders.default.order.>")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(stream.CachedInfo().State.Msgs, "message:", message.Subject, message.Header.Get("Nats-Msg-Id"))
	// Output:
	// failures: 0
	// failures: 0
	// 1 message: orders.default.order.place default:7-0
}
