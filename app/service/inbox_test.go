package service

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
	require.NoError(t, err)
	if len(secrets) > 0 {
		signature.Sign(secrets, r.Header, id, at, []byte(body))
	}
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, resp.Header.Get("Idempotent-Replayed") == "true", string(text)
}

func TestAServiceTakesSignedWebhooks(t *testing.T) {
	old, fresh, foreign := signature.NewSecret(), signature.NewSecret(), signature.NewSecret()
	s := service(t, func(c *Config) {
		c.Inbox = map[string]InboxConsumer{order.PaymentNotices: {Secrets: []signature.Secret{old, fresh}}}
	})
	now := time.Now()
	code, body := request(t, "POST", s.URL()+"/v1/workflows/order/place", cart)
	require.Equal(t, 201, code, body)
	for name, tt := range map[string]struct {
		at      time.Time
		secrets []signature.Secret
	}{"unsigned": {now, nil}, "by somebody else": {now, []signature.Secret{foreign}},
		"long ago": {now.Add(-time.Hour), []signature.Secret{old}}} {
		status, _, answer := notify(t, s, "n-1", abandoned, tt.at, tt.secrets...)
		assert.Truef(t, status == 401 && strings.Contains(answer, "unauthorized"), "%s: %d %s", name, status, answer)
	}
	status, replayed, answer := notify(t, s, "n-1", abandoned, now, old)
	assert.Truef(t, status == 200 && !replayed && strings.Contains(answer, `"state":"cancelled"`), "%d %v %s", status, replayed, answer)
	status, replayed, answer = notify(t, s, "n-1", abandoned, now.Add(time.Second), foreign, fresh)
	assert.Truef(t, status == 200 && replayed, "%d %v %s", status, replayed, answer)
	status, _, answer = notify(t, s, "n-1", strings.Replace(abandoned, "page", "shop", 1), now, old)
	assert.Truef(t, status == 422 && strings.Contains(answer, "message_reused"), "%d %s", status, answer)
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
	assert.NoError(t, <-src.done)
}

func TestAnInboxThatCannotBeIsRefused(t *testing.T) {
	good := []signature.Secret{signature.NewSecret()}
	for name, c := range map[string]InboxConsumer{
		"":                     {Secrets: good},
		order.PaymentNotices:   {},
		"payments of somebody": {Secrets: good},
	} {
		_, err := Config{Workflows: theOrder(), Inbox: map[string]InboxConsumer{name: c}}.withDefaults()
		_, ok := errors.AsType[*usage.Error](err)
		assert.Truef(t, ok, "%q: %v", name, err)
	}
	for name, c := range map[string]InboxConsumer{
		"tenant":      {Tenant: "\xff", Secrets: good},
		"zero secret": {Secrets: []signature.Secret{{}}},
	} {
		_, err := Config{Workflows: theOrder(), Inbox: map[string]InboxConsumer{order.PaymentNotices: c}}.withDefaults()
		_, ok := errors.AsType[*usage.Error](err)
		assert.Truef(t, ok, "%s: %v", name, err)
	}
}

func theOrder() []workflow.Source { return []workflow.Source{order.Workflow(provider.New())} }
