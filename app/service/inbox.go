package service

import (
	"maps"
	"slices"
	"time"

	"github.com/pawlhq/pawl/app/usage"
	"github.com/pawlhq/pawl/inbox/signature"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// InboxConsumer takes webhooks that are signed as Standard Webhooks says.
type InboxConsumer struct {
	// Tenant is whose the messages are. Default "default".
	Tenant string
	// Secrets are those that the sender may sign with: one, or two while one is being
	// replaced.
	Secrets []signature.Secret
	// Keep is how long messages are stored as they were received, with their headers; see [api.Consumer]. Zero stores none.
	Keep time.Duration
}

// checkInbox refuses consumers that could never take a message.
func (c Config) checkInbox(workflows []*workflow.Workflow) error {
	received := map[string]bool{}
	for _, w := range workflows {
		for _, s := range w.Steps {
			for _, r := range s.Receives {
				received[r.Consumer] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Inbox)) {
		consumer := c.Inbox[name]
		m := transitions.Message{Tenant: consumer.Tenant, Consumer: name, ID: "any", Keep: consumer.Keep}
		switch err := m.Check(); {
		case err != nil:
			return usage.Errorf("inbox %q: %w", name, err)
		case len(consumer.Secrets) == 0 || slices.ContainsFunc(consumer.Secrets, signature.Secret.IsZero):
			return usage.Errorf("inbox %q has no secret: every sender would be accepted", name)
		case !received[name]:
			return usage.Errorf("inbox %q: no transition of any workflow receives from it", name)
		}
	}
	return nil
}
