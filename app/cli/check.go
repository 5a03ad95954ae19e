package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/app/cli/flags"
	"github.com/pawlhq/pawl/app/cli/output"
	"github.com/pawlhq/pawl/app/doctor"
	"github.com/pawlhq/pawl/app/progress"
	"github.com/pawlhq/pawl/app/service"
	"github.com/pawlhq/pawl/app/usage"
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
		Short: "Verify the audit chains",
		Long: `Verify the audit chains of a tenant, or of one instance: recompute the hashes of all
audit rows, compare them with the instances and the events, and check the log for gaps.
The exit code is 1 if a chain is broken or the tenant has no rows. The first broken row
of each chain is printed. A database owner who recomputes all hashes is not detected.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			instance, err := flags.Instance(c)
			if err != nil {
				return err
			}
			config := configOf(c, slog.LevelInfo, workflows...)
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
	flags.Tenant(c, &tenant, transitions.DefaultTenant, "tenant of the chains")
	c.Flags().String("instance", "", "verify only the instance with this id")
	flags.Output(c, &asJSON)
	return c
}

// verify checks the chain of an instance, or all chains of the tenant if instance is nil.
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

// report prints the result. It returns an error for broken chains, and for a tenant without transitions, whose name may be mistyped.
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

func doctorCommand(workflows []workflow.Source) *cobra.Command {
	var timeout time.Duration
	var asJSON bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Check the database and suggest remedies",
		Long: `Check the database and suggest remedies: server settings, clocks, pooler, indexes,
partitions, old transactions, stuck and delayed work. Use the connection string of the
nodes. The command writes nothing, and finishes even if the database is slow or down.
docs/doctor.md lists the checks and the required rights.

The exit code is 0 if there are no findings, 3 for warnings or checks that could not be
done, and 4 for problems.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var r *doctor.Report
			config := configOf(c, slog.LevelWarn, workflows...)
			err := service.WithURL(c.Context(), config, func(url string) (err error) {
				r, err = doctor.Examine(c.Context(), doctor.Config{URL: url, Schema: config.Schema, Workflows: workflows, Timeout: timeout})
				return err
			})
			if err != nil {
				return err
			}
			if err := output.Print(c, asJSON, r, func(w io.Writer) error { return printReport(w, r) }); err != nil {
				return err
			}
			return verdictOf(r)
		},
	}
	c.Flags().DurationVar(&timeout, "timeout", doctor.DefaultTimeout, "time limit")
	flags.Before(c, func() error {
		if timeout <= 0 {
			return usage.Errorf("--timeout %s is not positive", timeout)
		}
		return nil
	})
	flags.Output(c, &asJSON)
	return c
}

// verdictOf returns an error with the exit code and a summary of a report, or nil if there are no findings.
func verdictOf(r *doctor.Report) error {
	several := func(n int, what string) string {
		if n != 1 {
			what += "s"
		}
		return fmt.Sprintf("%d %s", n, what)
	}
	summary := errors.New(fmt.Sprintf("%s, %s, %d not seen", several(r.Problems, "problem"), several(r.Warnings, "warning"), r.Unknown))
	switch {
	case r.Problems > 0:
		return &flags.Exit{Code: flags.ExitBroken, Err: summary}
	case r.Warnings > 0 || r.Unknown > 0:
		return &flags.Exit{Code: flags.ExitToDo, Err: summary}
	}
	return nil
}

// printReport prints each finding, followed by its remedy.
func printReport(w io.Writer, r *doctor.Report) error {
	var b strings.Builder
	width := 0
	for _, f := range r.Findings {
		width = max(width, len(f.Check))
	}
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%-7s  %-*s  %s\n", f.Severity, width, f.Check, output.Visible(f.Found))
		if f.Do != "" {
			fmt.Fprintf(&b, "%-7s  %-*s  → %s\n", "", width, "", output.Visible(f.Do))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
