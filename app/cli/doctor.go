package cli

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/app/cli/flags"
	"github.com/pawlhq/pawl/app/cli/output"
	"github.com/pawlhq/pawl/app/doctor"
	"github.com/pawlhq/pawl/app/service"
	"github.com/pawlhq/pawl/app/usage"
	"github.com/pawlhq/pawl/workflow"
)

func doctorCommand(workflows []workflow.Source) *cobra.Command {
	var timeout time.Duration
	var asJSON bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Look at the database for what hurts, and say what to do",
		Long: `Look at the database for what hurts, and say what to do: the server and its
settings, the clocks, a pooler, indexes, partitions, old transactions, what is
stuck or behind. Give it the connection string of the nodes. It writes nothing,
and ends also where the database is slow or gone. docs/doctor.md lists what it
looks at, and the rights that it needs.

The exit code is 0 where all is well, 3 for a warning or for what could not be
seen, and 4 for a problem.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			r, err := examine(c, workflows, timeout)
			if err != nil {
				return err
			}
			if asJSON {
				err = output.JSON(c.OutOrStdout(), r)
			} else {
				err = printReport(c.OutOrStdout(), r)
			}
			if err != nil {
				return err
			}
			return verdictOf(r)
		},
	}
	c.Flags().DurationVar(&timeout, "timeout", doctor.DefaultTimeout, "how long it may take")
	flags.Before(c, func() error {
		if timeout <= 0 {
			return usage.Errorf("--timeout %s is not positive", timeout)
		}
		return nil
	})
	flags.Output(c, &asJSON)
	return c
}

func examine(c *cobra.Command, workflows []workflow.Source, timeout time.Duration) (r *doctor.Report, err error) {
	config := ConfigOf(c, workflows...)
	config.Log = logOf(c, slog.LevelWarn)
	err = service.WithURL(c.Context(), config, func(url string) (err error) {
		r, err = doctor.Examine(c.Context(), doctor.Config{URL: url, Schema: config.Schema, Workflows: workflows, Timeout: timeout})
		return err
	})
	return r, err
}

// verdictOf is the exit code of a report, with what it has in a few words.
func verdictOf(r *doctor.Report) error {
	summary := errors.New(summaryOf(r))
	switch {
	case r.Problems > 0:
		return &flags.Exit{Code: flags.ExitBroken, Err: summary}
	case r.Warnings > 0 || r.Unknown > 0:
		return &flags.Exit{Code: flags.ExitToDo, Err: summary}
	}
	return nil
}

func summaryOf(r *doctor.Report) string {
	several := func(n int, what string) string {
		if n != 1 {
			what += "s"
		}
		return fmt.Sprintf("%d %s", n, what)
	}
	return fmt.Sprintf("%s, %s, %d not seen", several(r.Problems, "problem"), several(r.Warnings, "warning"), r.Unknown)
}

// printReport prints a line for each finding, and under it what to do.
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
