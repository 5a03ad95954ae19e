package webhook_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/inbox/signature"
	"github.com/pawlhq/pawl/outbox/sink/webhook"
	"github.com/pawlhq/pawl/transitions"
)

// A receiver verifies the sender by the signature and recognizes repetitions by the id.
func Example() {
	secret, err := signature.ParseSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		fmt.Println(err)
		return
	}
	secrets := []signature.Secret{secret}

	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		id, err := signature.Verify(secrets, r.Header, body, time.Now(), signature.Tolerance)
		if err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		fmt.Println("received", id)
	}))
	defer receiver.Close()

	out, err := webhook.New(webhook.Config{
		URL: receiver.URL, Secrets: secrets,
		// A local receiver without TLS must be allowed explicitly.
		PlainHTTP: true, Private: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	defer out.Close(ctx)
	event := transitions.Event{Tenant: "default", Position: 7, Type: "order.place", Instance: uuid.New(), Payload: []byte(`{}`)}
	failures := out.Deliver(ctx, []transitions.Logged{{Event: event, CloudEvent: event.AppendCloudEvent(nil)}})
	fmt.Println("failures:", len(failures))
	// Output:
	// received default:7-0
	// failures: 0
}
