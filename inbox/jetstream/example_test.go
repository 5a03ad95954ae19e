package jetstream_test

import (
	"context"
	"fmt"
	"os"

	"github.com/nats-io/nats.go"
	upstream "github.com/nats-io/nats.go/jetstream"

	"github.com/pawlhq/pawl/inbox/jetstream"
	"github.com/pawlhq/pawl/outbox/sink/natstest"
	"github.com/pawlhq/pawl/transitions"
)

// The engine normally runs a source; here a function does. The first attempt fails, so the message
// is redelivered.
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
	if err := publish(server.URL()); err != nil {
		fmt.Println(err)
		return
	}

	source, err := jetstream.New(jetstream.Config{URL: server.URL(), Stream: "PAYMENTS", Subjects: []string{"payments.>"},
		Consumer: "payments"})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	err = source.Run(ctx, func(_ context.Context, m transitions.Message) error {
		fmt.Printf("%s, delivery %d: %s %s\n", m.ID, m.Delivery, m.Type, m.Body)
		if m.Delivery == 1 {
			return fmt.Errorf("the database is away")
		}
		stop()
		return nil
	})
	fmt.Println("ended:", err)
	// Output:
	// capture-7, delivery 1: payments.captured {"order":"k-9"}
	// capture-7, delivery 2: payments.captured {"order":"k-9"}
	// ended: <nil>
}

// publish represents another system.
func publish(url string) error {
	conn, err := nats.Connect(url)
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := upstream.New(conn)
	if err != nil {
		return err
	}
	ctx := context.Background()
	if _, err := js.CreateStream(ctx, upstream.StreamConfig{Name: "PAYMENTS", Subjects: []string{"payments.>"}}); err != nil {
		return err
	}
	_, err = js.Publish(ctx, "payments.captured", []byte(`{"order":"k-9"}`), upstream.WithMsgID("capture-7"))
	return err
}
