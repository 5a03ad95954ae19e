package api

import (
	"fmt"
	"net/http"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Consumer takes the messages that are posted to /v1/inbox/ and its name. Who
// sends them is no Caller: the signature is the authentication.
type Consumer struct {
	// Tenant is whose the messages are; "" is "default".
	Tenant string
	// Verify says whether the sender has signed the body, as it came, and returns the
	// message's id. The text of its error is shown to the sender.
	Verify func(h http.Header, body []byte) (id string, err error)
}

// checkConsumers returns a complete copy.
func checkConsumers(given map[string]Consumer) (map[string]Consumer, error) {
	complete := make(map[string]Consumer, len(given))
	for name, c := range given {
		m := transitions.Message{Tenant: c.Tenant, Consumer: name, ID: "any"}.WithDefaults()
		if err := m.Check(); err != nil {
			return nil, fmt.Errorf("api: Config.Inbox[%q]: %w", name, err)
		}
		if c.Verify == nil {
			return nil, fmt.Errorf("api: Config.Inbox[%q] has no Verify", name)
		}
		c.Tenant = m.Tenant
		complete[name] = c
	}
	return complete, nil
}

// The answers to messages that are no command, now or any more.
const expiredMessage = `{"expired":true}`

// receive consumes a signed message: POST /v1/inbox/{consumer}. Nothing touches the
// database before the signature is verified.
func (a *API) receive(w http.ResponseWriter, r *request) error {
	name, _ := r.value("consumer", Known)
	consumer, known := a.cfg.Inbox[name]
	if !known {
		return workflow.Errorf(workflow.NotFound, "there is no such consumer here")
	}
	body, err := a.body(w, r)
	if err != nil {
		return err
	}
	id, err := consumer.Verify(r.Header, body)
	if err != nil {
		return workflow.Errorf(workflow.Unauthorized, "%s", err)
	}
	if err := a.admit(w, consumer.Tenant, 1); err != nil {
		return err
	}
	receipt, err := a.engine.Consume(r.Context(), transitions.Message{
		Tenant: consumer.Tenant, Consumer: name, ID: id, Body: body,
	})
	if workflow.CodeOf(err) == workflow.KeyExpired {
		// It was done, long ago. The 410 of other commands would tell a sender that
		// nobody is here any more.
		w.Header().Set(headerReplayed, "true")
		send(w, http.StatusOK, mediaJSON, []byte(expiredMessage))
		return nil
	}
	if err != nil {
		return err
	}
	return sendReceipt(w, receipt)
}
