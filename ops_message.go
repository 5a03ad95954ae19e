package pawl

import (
	"context"
	"encoding/hex"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// messageFlags name a message together with its consumer and its id.
type messageFlags struct{ tenant, hash string }

func (m *messageFlags) flags(c *cobra.Command) {
	c.Flags().StringVar(&m.tenant, "tenant", transitions.DefaultTenant, "whose message")
	c.Flags().StringVar(&m.hash, "hash", "", "SHA-256 of its body in hexadecimal, where two messages have one id")
}

// each checks the flags before it does something.
func (m *messageFlags) each(do func(c *cobra.Command, args []string) error) func(c *cobra.Command, args []string) error {
	return func(c *cobra.Command, args []string) error {
		if err := checkTenant(m.tenant); err != nil {
			return err
		}
		if b, err := hex.DecodeString(m.hash); err != nil || len(b) != 0 && len(b) != 32 {
			return usagef("--hash is not 64 hexadecimal digits")
		}
		return do(c, args)
	}
}

// find looks for the message among those that wait, and then among the others.
func (m *messageFlags) find(ctx context.Context, e *engine.Engine, consumer, id string) (transitions.MessageRef, error) {
	if m.hash != "" {
		ref := transitions.MessageRef{Tenant: m.tenant, Consumer: consumer, ID: id}
		_, err := hex.Decode(ref.Hash[:], []byte(m.hash))
		return ref, err
	}
	for _, status := range []transitions.MessageStatus{transitions.MessageWaiting, transitions.MessageDiscarded, transitions.MessageRetried} {
		found, err := m.with(ctx, e, consumer, id, status)
		switch {
		case err != nil:
			return transitions.MessageRef{}, err
		case len(found) > 1:
			return transitions.MessageRef{}, usagef("%d messages have this id: name one with --hash", len(found))
		case len(found) == 1:
			return found[0], nil
		}
	}
	return transitions.MessageRef{}, workflow.Errorf(workflow.NotFound, "there is no such message of %q", consumer)
}

// with lists the messages with this id and status.
func (m *messageFlags) with(ctx context.Context, e *engine.Engine, consumer, id string, status transitions.MessageStatus) (found []transitions.MessageRef, err error) {
	f := transitions.DeadMessageFilter{Tenant: m.tenant, Consumer: consumer, Status: status, Limit: 1000}
	for more := true; more; {
		var list []transitions.DeadMessage
		if list, more, err = e.DeadMessages(ctx, f); err != nil {
			return nil, err
		}
		for i := range list {
			if list[i].ID == id {
				found = append(found, list[i].MessageRef)
			}
			f.After = list[i]
		}
	}
	return found, nil
}
