package pawl

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func (o *ops) inboxCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "inbox",
		Short: "See to messages that were not consumed",
		Args:  noSuchCommand,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(o.inboxListCommand(), o.inboxBodyCommand(), o.inboxRetryCommand(), o.inboxDiscardCommand())
	return c
}

func (o *ops) inboxListCommand() *cobra.Command {
	var f transitions.DeadMessageFilter
	var status string
	c := &cobra.Command{
		Use:   "list",
		Short: "List messages that were not consumed",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			f.Status = transitions.MessageStatus(status)
			if err := checkTenant(f.Tenant); err != nil {
				return err
			}
			if err := checkLimit(f.Limit); err != nil {
				return err
			}
			return o.run(c, func(ctx context.Context, e *engine.Engine) error {
				found, more, err := e.DeadMessages(ctx, f)
				if err != nil {
					return err
				}
				list := make([]api.DeadMessage, len(found))
				for i := range found {
					list[i] = api.DeadMessageOf(&found[i])
				}
				if o.json {
					return printJSON(c.OutOrStdout(), list)
				}
				if err := printMessages(c.OutOrStdout(), list); err != nil {
					return err
				}
				return sayMore(c, more)
			})
		},
	}
	c.Flags().StringVar(&f.Tenant, "tenant", transitions.DefaultTenant, "whose messages")
	c.Flags().StringVar(&f.Consumer, "consumer", "", "only those of this consumer")
	c.Flags().StringVar(&status, "status", string(transitions.MessageWaiting), "waiting (for a person), retried or discarded")
	limitFlag(c, &f.Limit)
	return c
}

func printMessages(w io.Writer, list []api.DeadMessage) error {
	var rows [][]string
	for _, m := range list {
		rows = append(rows, []string{moment(m.CreatedAt), m.Consumer, m.Message, orNone(m.Type), string(m.Status), string(m.Code), fmt.Sprint(m.Deliveries), orNone(m.Failure)})
	}
	return printTable(w, []string{"since", "consumer", "id", "type", "status", "code", ">deliveries", "failure"}, rows)
}

func (o *ops) inboxBodyCommand() *cobra.Command {
	var m messageFlags
	c := &cobra.Command{
		Use:   "body CONSUMER ID",
		Short: "Print the body of a message, as it was sent",
		Args:  operands("CONSUMER", "ID"),
		RunE: m.each(func(c *cobra.Command, args []string) error {
			return o.run(c, func(ctx context.Context, e *engine.Engine) error {
				ref, err := m.find(ctx, e, args[0], args[1])
				if err != nil {
					return err
				}
				found, err := e.DeadMessage(ctx, ref)
				if err != nil {
					return err
				}
				body, err := found.Sent()
				if err != nil {
					return err
				}
				_, err = c.OutOrStdout().Write(body)
				return err
			})
		}),
	}
	m.flags(c)
	return c
}

func (o *ops) inboxRetryCommand() *cobra.Command {
	var m messageFlags
	var a author
	c := &cobra.Command{
		Use:   "retry CONSUMER ID",
		Short: "Consume a message again, as it was sent",
		Long: `Consume a message again, as it was sent. This program takes part as a node for
the moment, which commits what comes of it and works on nothing else; so it has
to be one that knows the workflow that takes the message.`,
		Args: operands("CONSUMER", "ID"),
		RunE: m.each(func(c *cobra.Command, args []string) error {
			return o.runStarted(c, func(ctx context.Context, e *engine.Engine) error {
				ref, err := m.find(ctx, e, args[0], args[1])
				if err != nil {
					return err
				}
				receipt, err := e.RetryMessage(ctx, ref, a.by, a.reason)
				if err == nil {
					err = receipt.Err()
				}
				if e, ok := errors.AsType[*workflow.Error](err); ok && len(e.Fields) > 0 {
					return fmt.Errorf("%s: %s", e.Code, e.Detail()) // what is wrong where, as the list has it
				}
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(c.OutOrStdout(), "%s %s: consumed\n", ref.Consumer, ref.ID)
				return err
			})
		}),
	}
	m.flags(c)
	a.flags(c)
	return c
}

func (o *ops) inboxDiscardCommand() *cobra.Command {
	var m messageFlags
	var a author
	c := &cobra.Command{
		Use:   "discard CONSUMER ID",
		Short: "Say of a message that it is never to be consumed, also when it is sent again",
		Args:  operands("CONSUMER", "ID"),
		RunE: m.each(func(c *cobra.Command, args []string) error {
			return o.run(c, func(ctx context.Context, e *engine.Engine) error {
				ref, err := m.find(ctx, e, args[0], args[1])
				if err != nil {
					return err
				}
				found, err := e.DiscardMessage(ctx, ref, a.by, a.reason)
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(c.OutOrStdout(), "%s %s: %s\n", ref.Consumer, ref.ID, found.Status)
				return err
			})
		}),
	}
	m.flags(c)
	a.flags(c)
	return c
}
