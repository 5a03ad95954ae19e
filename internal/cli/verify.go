package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/cli/flags"
	"github.com/pawlhq/pawl/internal/progress"
	"github.com/pawlhq/pawl/internal/service"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func verifyCommand(workflows []workflow.Source) *cobra.Command {
	var tenant string
	c := &cobra.Command{
		Use:   "verify",
		Short: "Check the audit chains",
		Long: `Check the audit chains: recompute the hash of every audit row of a tenant,
whether each instance and its events in the outbox are as its rows say, and
whether the log has a gap; or only the chain of one instance. Each broken chain
is named with its first broken row, and the exit code is 1, also for a tenant
that has no rows. Who owns the
database and computes every hash anew is not found.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			v := verification{config: ConfigOf(c, workflows...), tenant: tenant, out: c.OutOrStdout(), progress: c.ErrOrStderr()}
			if v.instance, err = flags.Instance(c); err != nil {
				return err
			}
			v.config.Log = logOf(c, slog.LevelInfo)
			return v.run(c.Context())
		},
	}
	flags.Tenant(c, &tenant, transitions.DefaultTenant, "whose chains to check")
	c.Flags().String("instance", "", "check only the chain of the instance with this id")
	return c
}

// verification is one run of the command verify.
type verification struct {
	config   service.Config
	tenant   string
	instance uuid.UUID // zero: all of the tenant's
	out      io.Writer
	progress io.Writer
}

func (v *verification) run(ctx context.Context) error {
	return service.WithEngine(ctx, v.config, func(ctx context.Context, e *engine.Engine) error {
		found, err := v.check(ctx, e)
		if err != nil {
			return err
		}
		return v.report(found)
	})
}

func (v *verification) check(ctx context.Context, e *engine.Engine) (inspect.Verification, error) {
	if v.instance != uuid.Nil {
		return e.Verify(ctx, v.tenant, v.instance)
	}
	rows, err := e.Head(ctx, v.tenant) // one row for each position, unless something is wrong
	if err != nil {
		return inspect.Verification{}, err
	}
	meter := progress.New(v.progress, "verify", "rows", rows)
	defer meter.Stop()
	return e.VerifyWithProgress(ctx, v.tenant, v.instance, meter.Set)
}

// report prints what was found. Its error says what is broken first, or that there is
// nothing that could be: a name that was mistyped is not intact.
func (v *verification) report(found inspect.Verification) error {
	if len(found.Broken) == 0 && found.Entries == 0 {
		return fmt.Errorf("no such tenant: nothing to verify: tenant %q has no transitions in this database", v.tenant)
	}
	if len(found.Broken) == 0 {
		_, err := fmt.Fprintf(v.out, "intact: %d rows of %d instances of tenant %s\n", found.Entries, found.Instances, v.tenant)
		return err
	}
	for _, b := range found.Broken {
		if _, err := fmt.Fprintf(v.out, "broken: %s\n", describeBreak(b)); err != nil {
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
