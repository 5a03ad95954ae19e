package ops

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/app/cli/flags"
	"github.com/pawlhq/pawl/app/cli/output"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
)

func (o *ops) inboxCommand() *cobra.Command {
	return flags.Group("inbox", "Manage dead messages and read stored messages",
		o.inboxListCommand(), o.inboxBodyCommand(), o.inboxRetryCommand(), o.inboxDiscardCommand(), o.inboxKeptCommand(),
		o.inboxRawCommand())
}

func (o *ops) inboxListCommand() *cobra.Command {
	var f inspect.DeadMessageFilter
	c := &cobra.Command{
		Use:   "list",
		Short: "List messages that were not consumed",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			header := []string{"since", "consumer", "id", "type", "workflow", "business key", "status", "code", ">deliveries", "failure"}
			return list(o, c, header, func(ctx context.Context, e *engine.Engine) (dead []api.DeadMessage, more bool, err error) {
				found, more, err := e.Admin().DeadMessages(ctx, f)
				for i := range found {
					dead = append(dead, api.DeadMessageOf(&found[i]))
				}
				return dead, more, err
			}, func(m *api.DeadMessage) []string {
				return []string{output.Moment(m.CreatedAt), m.Consumer, m.Message, output.OrNone(m.Type), output.OrNone(m.Workflow),
					output.OrNone(m.BusinessKey), string(m.Status), string(m.Code), fmt.Sprint(m.Deliveries), output.OrNone(m.Failure)}
			}, func(list []api.DeadMessage) any { return api.DeadMessagePage{Messages: list} })
		},
	}
	flags.Tenant(c, &f.Tenant, transitions.DefaultTenant, "whose messages")
	c.Flags().StringVar(&f.Consumer, "consumer", "", "only those of this consumer")
	c.Flags().StringVar(&f.Workflow, "workflow", "", "only those that this workflow takes")
	c.Flags().StringVar(&f.BusinessKey, "business-key", "", "only those for the instance with this business key, with --workflow")
	c.Flags().StringVar((*string)(&f.Status), "status", string(inspect.MessageWaiting),
		"waiting (for an operator), retried or discarded")
	flags.Limit(c, &f.Limit)
	flags.Before(c, func() error { return flags.NotEmpty(c, "consumer", "workflow", "business-key") })
	return c
}

func (o *ops) inboxBodyCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "body CONSUMER ID",
		Short: "Print the body of a message, as it was sent",
	}
	return o.messageCommand(c, func(ctx context.Context, e *engine.Engine, ref transitions.MessageRef) error {
		found, err := e.Admin().DeadMessage(ctx, ref)
		if err != nil {
			return err
		}
		body, err := found.Sent()
		if err != nil {
			return err
		}
		shown := struct {
			api.DeadMessage
			Body []byte `json:"body"` // in base64: it may be anything
		}{api.DeadMessageOf(&found), body}
		return o.print(c, &shown, func(w io.Writer) error {
			_, err := w.Write(body)
			return err
		})
	})
}

func (o *ops) inboxRetryCommand() *cobra.Command {
	var a author
	c := &cobra.Command{
		Use:   "retry CONSUMER ID",
		Short: "Consume a message again, as it was sent",
		Long: `Consume a message again, as it was sent. This program takes part as a node for
the moment, which commits what comes of it and works on nothing else; so it has
to be one that knows the workflow that takes the message.`,
	}
	a.flags(c)
	return o.messageCommand(c, func(ctx context.Context, e *engine.Engine, ref transitions.MessageRef) error {
		if err := e.Start(ctx); err != nil {
			return err
		}
		receipt, err := e.Admin().RetryMessage(ctx, ref, a.by, a.reason)
		if err == nil {
			err = receipt.Err()
		}
		if err != nil {
			return err
		}
		return o.say(c, json.RawMessage(receipt.Body), "%s %s: consumed", ref.Consumer, ref.ID)
	})
}

func (o *ops) inboxDiscardCommand() *cobra.Command {
	var a author
	c := &cobra.Command{
		Use:   "discard CONSUMER ID",
		Short: "Say of a message that it is never to be consumed, also when it is sent again",
	}
	a.flags(c)
	return o.messageCommand(c, func(ctx context.Context, e *engine.Engine, ref transitions.MessageRef) error {
		found, err := e.Admin().DiscardMessage(ctx, ref, a.by, a.reason)
		if err != nil {
			return err
		}
		return o.say(c, api.DeadMessageOf(&found), "%s %s: %s", ref.Consumer, ref.ID, found.Status)
	})
}
