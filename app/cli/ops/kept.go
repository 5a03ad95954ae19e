package ops

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/app/cli/flags"
	"github.com/pawlhq/pawl/app/cli/output"
	"github.com/pawlhq/pawl/app/usage"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func (o *ops) inboxKeptCommand() *cobra.Command {
	var f inspect.KeptMessageFilter
	c := &cobra.Command{
		Use:   "kept",
		Short: "List messages that were stored as received",
		Long: `List messages that were stored as received, for consumers with serve --inbox-keep,
the oldest of each consumer first. The command raw prints one.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			header := []string{"received", "consumer", "id", ">bytes", "kept until", "hash"}
			return list(o, c, header, func(ctx context.Context, e *engine.Engine) (kept []api.KeptMessage, more bool, err error) {
				found, more, err := e.Admin().KeptMessages(ctx, f)
				for i := range found {
					kept = append(kept, api.KeptMessageOf(&found[i]))
				}
				return kept, more, err
			}, func(m *api.KeptMessage) []string {
				return []string{output.Moment(m.ReceivedAt), m.Consumer, m.Message, fmt.Sprint(m.Size), output.Moment(m.KeepUntil), m.Hash}
			}, func(list []api.KeptMessage) any { return api.KeptMessagePage{Messages: list} })
		},
	}
	flags.Tenant(c, &f.Tenant, transitions.DefaultTenant, "whose messages")
	c.Flags().StringVar(&f.Consumer, "consumer", "", "only those of this consumer")
	c.Flags().StringVar(&f.ID, "id", "", "only those with this message id, with --consumer")
	flags.Limit(c, &f.Limit)
	flags.Before(c, func() error { return flags.NotEmpty(c, "consumer", "id") })
	return c
}

func (o *ops) inboxRawCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "raw CONSUMER ID",
		Short: "Print a stored message with its headers",
		Long: `Print a message as it was received: its headers, including the signature, an empty
line and the body.`,
	}
	return o.refCommand(c, findKept, func(ctx context.Context, e *engine.Engine, ref transitions.MessageRef) error {
		found, err := e.Admin().KeptMessage(ctx, ref)
		if err != nil {
			return err
		}
		raw := api.RawMessageOf(&found)
		return o.print(c, &raw, func(w io.Writer) error {
			for _, name := range slices.Sorted(maps.Keys(raw.Headers)) {
				for _, value := range raw.Headers[name] {
					if _, err := fmt.Fprintf(w, "%s: %s\n", output.Visible(name), output.Visible(value)); err != nil {
						return err
					}
				}
			}
			_, err := fmt.Fprintf(w, "\n%s", found.Body)
			return err
		})
	})
}

// findKept returns the complete reference of a kept message without its hash.
func findKept(ctx context.Context, e *engine.Engine, ref transitions.MessageRef) (transitions.MessageRef, error) {
	f := inspect.KeptMessageFilter{Tenant: ref.Tenant, Consumer: ref.Consumer, ID: ref.ID, Limit: 2}
	found, _, err := e.Admin().KeptMessages(ctx, f)
	switch {
	case err != nil:
		return transitions.MessageRef{}, err
	case len(found) > 1:
		return transitions.MessageRef{}, usage.Errorf("several messages have this id: name one with --hash")
	case len(found) == 0:
		return transitions.MessageRef{}, workflow.Errorf(workflow.NotFound, "no such message of %q is kept", ref.Consumer)
	}
	return found[0].MessageRef, nil
}
