package file_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/outbox/sink/file"
	"github.com/pawlhq/pawl/transitions"
)

// Each event is a line of JSON.
func ExampleNewWriter() {
	event := transitions.Event{
		Tenant: "default", Position: 1, Type: "order.place", Workflow: "order", Version: 1, Transition: "place", State: "Placed",
		Instance: uuid.MustParse("01936b0e-0000-7000-8000-000000000001"), At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Payload: []byte(`{"total":129900}`),
	}
	out := file.NewWriter(os.Stdout)
	ctx := context.Background()
	failures := out.Deliver(ctx, []transitions.Logged{{Event: event, CloudEvent: event.AppendCloudEvent(nil)}})
	fmt.Println("failures:", len(failures))
	if err := out.Close(ctx); err != nil {
		fmt.Println(err)
	}
	// Output:
	// {"specversion":"1.0","id":"1-0","source":"/pawl/default","type":"order.place","subject":"01936b0e-0000-7000-8000-000000000001","time":"2026-01-02T03:04:05Z","position":"1","instance":"01936b0e-0000-7000-8000-000000000001","version":1,"workflow":"order","transition":"place","state":"Placed","datacontenttype":"application/json","data":{"total":129900}}
	// failures: 0
}
