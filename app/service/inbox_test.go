package service

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/app/usage"
	"github.com/pawlhq/pawl/examples/order"
	"github.com/pawlhq/pawl/examples/order/provider"
	"github.com/pawlhq/pawl/inbox"
	"github.com/pawlhq/pawl/inbox/signature"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

const abandoned = `{"type":"payment.abandoned","data":{"reference":"c-1:k-9","reason":"left the page"}}`

// notify posts a message to the consumer of payment notices, signed by secrets.
func notify(
	t *testing.T,
	s *Service,
	id, body string,
	at time.Time,
	secrets ...signature.Secret,
) (status int, replayed bool, answer string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+"/v1/inbox/"+order.PaymentNotices, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if len(secrets) > 0 {
		signature.Sign(secrets, r.Header, id, at, []byte(body))
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header.Get("Idempotent-Replayed") == "true", string(text)
}

func TestAServiceTakesSignedWebhooks(t *testing.T) {
	old, fresh, foreign := signature.NewSecret(), signature.NewSecret(), signature.NewSecret()
	s := service(t, func(c *Config) {
		c.Inbox = map[string]InboxConsumer{order.PaymentNotices: {Secrets: []signature.Secret{old, fresh}}}
	})
	now := time.Now()
	if code, body := request(t, "POST", s.URL()+"/v1/workflows/order/place", cart); code != 201 {
		t.Fatal(code, body)
	}
	for name, tt := range map[string]struct {
		at      time.Time
		secrets []signature.Secret
	}{"unsigned": {now, nil}, "by somebody else": {now, []signature.Secret{foreign}},
		"long ago": {now.Add(-time.Hour), []signature.Secret{old}}} {
		if status, _, answer := notify(t, s, "n-1", abandoned, tt.at, tt.secrets...); status != 401 || !strings.Contains(answer, "unauthorized") {
			t.Errorf("%s: %d %s", name, status, answer)
		}
	}
	if status, replayed, answer := notify(t, s, "n-1", abandoned, now, old); status != 200 || replayed ||
		!strings.Contains(answer, `"state":"cancelled"`) {
		t.Errorf("%d %v %s", status, replayed, answer)
	}
	if status, replayed, answer := notify(t, s, "n-1", abandoned, now.Add(time.Second), foreign, fresh); status != 200 || !replayed {
		t.Errorf("%d %v %s", status, replayed, answer)
	}
	if status, _, answer := notify(t, s, "n-1", strings.Replace(abandoned, "page", "shop", 1), now, old); status != 422 ||
		!strings.Contains(answer, "message_reused") {
		t.Errorf("%d %s", status, answer)
	}
}

// stream is a source with one message.
type stream struct {
	message transitions.Message
	done    chan error
}

func (s stream) Run(ctx context.Context, consume func(context.Context, transitions.Message) error) error {
	s.done <- consume(ctx, s.message)
	<-ctx.Done()
	return nil
}

func TestAServiceConsumesFromItsSources(t *testing.T) {
	src := stream{
		transitions.Message{Consumer: order.PaymentNotices, ID: "n", Body: []byte(`{"type":"charge.succeeded"}`)},
		make(chan error, 1),
	}
	service(t, func(c *Config) { c.Sources = []inbox.Source{src} })
	if err := <-src.done; err != nil {
		t.Error(err)
	}
}

func TestAnInboxThatCannotBeIsRefused(t *testing.T) {
	good := []signature.Secret{signature.NewSecret()}
	for name, c := range map[string]InboxConsumer{
		"":                     {Secrets: good},
		order.PaymentNotices:   {},
		"payments of somebody": {Secrets: good},
	} {
		_, err := Config{Workflows: theOrder(), Inbox: map[string]InboxConsumer{name: c}}.withDefaults()
		if _, ok := errors.AsType[*usage.Error](err); !ok {
			t.Errorf("%q: %v", name, err)
		}
	}
	for name, c := range map[string]InboxConsumer{
		"tenant":      {Tenant: "\xff", Secrets: good},
		"zero secret": {Secrets: []signature.Secret{{}}},
	} {
		_, err := Config{Workflows: theOrder(), Inbox: map[string]InboxConsumer{order.PaymentNotices: c}}.withDefaults()
		if _, ok := errors.AsType[*usage.Error](err); !ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func theOrder() []workflow.Source { return []workflow.Source{order.Workflow(provider.New())} }
