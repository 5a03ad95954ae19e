package service

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/examples/order"
	"github.com/pawlhq/pawl/inbox"
	"github.com/pawlhq/pawl/inbox/signature"
	"github.com/pawlhq/pawl/transitions"
)

func TestInbox_SignedWebhooks(t *testing.T) {
	old, fresh, foreign := signature.NewSecret(), signature.NewSecret(), signature.NewSecret()
	s := service(t, func(c *Config) {
		c.Inbox = map[string]InboxConsumer{order.PaymentNotices: {Secrets: []signature.Secret{old, fresh}}}
	})
	now := time.Now()
	place(t, s)
	const page = `{"type":"payment.abandoned","data":{"reference":"c-1:k-9","reason":"left the page"}}`
	for _, c := range []struct {
		name, body string
		at         time.Time
		secrets    []signature.Secret
		status     int
		want       string
	}{
		{"unsigned", page, now, nil, 401, "unauthorized"},
		{"foreign secret", page, now, []signature.Secret{foreign}, 401, "unauthorized"},
		{"old", page, now.Add(-time.Hour), []signature.Secret{old}, 401, "unauthorized"},
		{"first", page, now, []signature.Secret{old}, 200, `"state":"cancelled"`},
		{"replay", page, now.Add(time.Second), []signature.Secret{foreign, fresh}, 200, `"state":"cancelled"`},
		{"other body", strings.Replace(page, "page", "shop", 1), now, []signature.Secret{old}, 422, "message_reused"},
	} {
		header := http.Header{}
		if len(c.secrets) > 0 {
			signature.Sign(c.secrets, header, "n-1", c.at, []byte(c.body))
		}
		resp := do(t, s, "POST", "/v1/inbox/"+order.PaymentNotices, header, c.body)
		assert.Equal(t, c.status, resp.StatusCode, c.name)
		assert.Contains(t, textOf(t, resp), c.want, c.name)
		assert.Equal(t, c.name == "replay", resp.Header.Get("Idempotent-Replayed") == "true", c.name)
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

func TestInbox_Sources(t *testing.T) {
	src := stream{
		transitions.Message{Consumer: order.PaymentNotices, ID: "n", Body: []byte(`{"type":"charge.succeeded"}`)},
		make(chan error, 1),
	}
	service(t, func(c *Config) { c.Sources = []inbox.Source{src} })
	assert.NoError(t, <-src.done)
}
