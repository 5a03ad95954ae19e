package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/app/cli/flags"
	"github.com/pawlhq/pawl/app/cli/output"
	"github.com/pawlhq/pawl/app/progress"
	"github.com/pawlhq/pawl/app/service"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func verifyCommand(workflows []workflow.Source) *cobra.Command {
	var tenant string
	var asJSON bool
	c := &cobra.Command{
		Use:   "verify",
		Short: "Check the audit chains",
		Long: `Check the audit chains: recompute the hash of every audit row of a tenant,
whether each instance and its events in the outbox are as its rows say, and
whether the log has a gap; or only the chain of one instance. Each broken chain
is named with its first broken row, and the exit code is 1, also for a tenant
that has no rows. An owner of the database who computes every hash anew is not
found.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			instance, err := flags.Instance(c)
			if err != nil {
				return err
			}
			config := ConfigOf(c, workflows...)
			config.Log = logOf(c, slog.LevelInfo)
			return service.WithEngine(c.Context(), config, func(ctx context.Context, e *engine.Engine) error {
				found, err := verify(ctx, e, tenant, instance, c.ErrOrStderr())
				if err != nil {
					return err
				}
				w := c.OutOrStdout()
				if asJSON {
					if err := output.JSON(w, &found); err != nil {
						return err
					}
					w = io.Discard
				}
				return report(w, tenant, found)
			})
		},
	}
	flags.Tenant(c, &tenant, transitions.DefaultTenant, "whose chains to check")
	c.Flags().String("instance", "", "check only the chain of the instance with this id")
	flags.Output(c, &asJSON)
	return c
}

// verify checks the chain of an instance, or with none all of the tenant's.
func verify(ctx context.Context, e *engine.Engine, tenant string, instance uuid.UUID, w io.Writer) (inspect.Verification, error) {
	if instance != uuid.Nil {
		return e.Admin().Verify(ctx, tenant, instance)
	}
	rows, err := e.Read().Head(ctx, tenant) // one row for each position, unless something is wrong
	if err != nil {
		return inspect.Verification{}, err
	}
	meter := progress.New(w, "verify", "rows", rows)
	defer meter.Stop()
	return e.Admin().VerifyWithProgress(ctx, tenant, instance, meter.Set)
}

// report prints what was found. Its error says what is broken first, or that there is
// nothing that could be: a name that was mistyped is not intact.
func report(w io.Writer, tenant string, found inspect.Verification) error {
	if len(found.Broken) == 0 && found.Entries == 0 {
		return fmt.Errorf("no such tenant: nothing to verify: tenant %q has no transitions in this database", tenant)
	}
	if len(found.Broken) == 0 {
		_, err := fmt.Fprintf(w, "intact: %d rows of %d instances of tenant %s\n", found.Entries, found.Instances, tenant)
		return err
	}
	for _, b := range found.Broken {
		if _, err := fmt.Fprintf(w, "broken: %s\n", describeBreak(b)); err != nil {
			return err
		}
	}
	return fmt.Errorf("%d of %d chains broken, first %s", len(found.Broken), found.Instances, describeBreak(found.Broken[0]))
}

func describeBreak(b inspect.Break) string {
	if b.Instance == uuid.Nil {
		return "the log: " + b.Reason
	}
	return fmt.Sprintf("instance %s, version %d: %s", b.Instance, b.Version, b.Reason)
}
