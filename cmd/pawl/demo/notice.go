package demo

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/examples/order"
	"github.com/pawlhq/pawl/inbox/signature"
)

// notice is the chapter about messages that come in.
func (s *story) notice(ctx context.Context) error {
	s.title("A message from outside")
	const body = `{"type":"payment.abandoned","data":{"reference":"c-1:k-13","reason":"left the page"}}`
	signed := s.webhook("msg-1", body, s.secret)
	return s.play(ctx, []exchange{
		another("k-13"),
		{
			tell: "Its customer leaves the provider's page without paying. The provider tells so with a\n" +
				"webhook, signed as Standard Webhooks says. The workflow declares that this cancels the order.",
			request: signed, status: 200, as: "notice",
			checks: []check{first, has("state", "cancelled", "")},
		},
		{
			tell:    "A sender that has no answer sends its message again. A message is a command: its id is the key.",
			request: signed, status: 200,
			checks: []check{replayOf("notice")},
		},
		{
			tell:    "Anybody can send a message. Who does not know the secret is not heard.",
			request: s.webhook("msg-2", body, signature.NewSecret()), status: 401,
			checks: []check{refused("unauthorized", "not even the database was asked")},
		},
		{
			tell:    "A message that has the id of another one is a mistake of its sender ...",
			request: s.webhook("msg-1", strings.Replace(body, "k-13", "k-9", 1), s.secret), status: 422,
			checks: []check{refused("message_reused", "")},
		},
		{
			tell:    "... and waits for a person, on the list of dead messages.",
			request: get("/v1/ops/inbox?consumer=" + order.PaymentNotices), status: 200,
			checks: []check{deadMessages(1, "one message is on the list")},
		},
	})
}

// webhook is a message of the payment provider.
func (s *story) webhook(id, body string, secret signature.Secret) request {
	h := http.Header{}
	signature.Sign([]signature.Secret{secret}, h, id, time.Now(), []byte(body))
	r := request{method: http.MethodPost, path: "/v1/inbox/" + order.PaymentNotices, body: body}
	for _, name := range []string{"webhook-id", "webhook-timestamp", "webhook-signature"} {
		r = r.with(name, h.Get(name))
	}
	return r
}

// deadMessages asks a list of dead messages for so many.
func deadMessages(n int, says string) check {
	return check{says, func(_ *story, a answer) error {
		var page api.DeadMessagePage
		if err := json.Unmarshal(a.body, &page); err != nil {
			return fmt.Errorf("the list cannot be read: %w", err)
		}
		if len(page.Messages) != n {
			return wantMember(a, "messages", n)
		}
		return nil
	}}
}
