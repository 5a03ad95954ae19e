package ops

import (
	"context"
	"encoding/hex"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/app/cli/flags"
	"github.com/pawlhq/pawl/app/usage"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// messageCommand completes c as a command about one message on the list of dead messages.
func (o *ops) messageCommand(c *cobra.Command,
	do func(ctx context.Context, e *engine.Engine, ref transitions.MessageRef) error) *cobra.Command {
	return o.refCommand(c, find, do)
}

// refCommand completes c as a command about one message. find completes a reference without a hash.
func (o *ops) refCommand(c *cobra.Command,
	find func(ctx context.Context, e *engine.Engine, ref transitions.MessageRef) (transitions.MessageRef, error),
	do func(ctx context.Context, e *engine.Engine, ref transitions.MessageRef) error) *cobra.Command {
	var ref transitions.MessageRef
	var hash string
	c.Args = flags.Operands("CONSUMER", "ID")
	c.RunE = func(c *cobra.Command, args []string) error {
		ref.Consumer, ref.ID = args[0], args[1]
		return o.run(c, func(ctx context.Context, e *engine.Engine) (err error) {
			if hash == "" {
				if ref, err = find(ctx, e, ref); err != nil {
					return err
				}
			}
			return do(ctx, e, ref)
		})
	}
	flags.Tenant(c, &ref.Tenant, transitions.DefaultTenant, "whose message")
	c.Flags().StringVar(&hash, "hash", "", "SHA-256 of its body in hexadecimal, where two messages have one id")
	flags.Before(c, func() error {
		b, err := hex.DecodeString(hash)
		if err != nil || len(b) != 0 && len(b) != len(ref.Hash) {
			return usage.Errorf("--hash is not 64 hexadecimal digits")
		}
		copy(ref.Hash[:], b)
		return nil
	})
	return c
}

// find looks for a message without its hash among those that wait, and then among
// the others.
func find(ctx context.Context, e *engine.Engine, ref transitions.MessageRef) (transitions.MessageRef, error) {
	for _, status := range []inspect.MessageStatus{inspect.MessageWaiting, inspect.MessageDiscarded, inspect.MessageRetried} {
		found, err := sameID(ctx, e, ref, status)
		switch {
		case err != nil:
			return transitions.MessageRef{}, err
		case len(found) > 1:
			return transitions.MessageRef{}, usage.Errorf("%d messages have this id: name one with --hash", len(found))
		case len(found) == 1:
			return found[0], nil
		}
	}
	return transitions.MessageRef{}, workflow.Errorf(workflow.NotFound, "there is no such message of %q", ref.Consumer)
}

// sameID lists the messages with the same id and this status.
func sameID(
	ctx context.Context,
	e *engine.Engine,
	ref transitions.MessageRef,
	status inspect.MessageStatus,
) (found []transitions.MessageRef, err error) {
	f := inspect.DeadMessageFilter{Tenant: ref.Tenant, Consumer: ref.Consumer, Status: status, Limit: 1000}
	for more := true; more; {
		var list []inspect.DeadMessage
		if list, more, err = e.Admin().DeadMessages(ctx, f); err != nil {
			return nil, err
		}
		for i := range list {
			if list[i].ID == ref.ID {
				found = append(found, list[i].MessageRef)
			}
			f.After = list[i]
		}
	}
	return found, nil
}
