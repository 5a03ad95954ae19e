package cli

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/internal/doctor"
	"github.com/pawlhq/pawl/internal/service"
	"github.com/pawlhq/pawl/internal/usage"
	"github.com/pawlhq/pawl/workflow"
)

func doctorCommand(workflows []workflow.Source) *cobra.Command {
	var timeout time.Duration
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
	}
	c.Flags().DurationVar(&timeout, "timeout", doctor.DefaultTimeout, "how long it may take")
	output := outputOf(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		asJSON, err := output()
		if err != nil {
			return err
		}
		if timeout <= 0 {
			return usage.Errorf("--timeout %s is not positive", timeout)
		}
		config := ConfigOf(c, workflows...)
		config.Log = logOf(c, slog.LevelWarn)
		var r *doctor.Report
		err = service.WithDatabase(c.Context(), config, func(url string) (err error) {
			r, err = doctor.Examine(c.Context(), doctor.Config{URL: url, Schema: config.Schema, Workflows: workflows, Timeout: timeout})
			return err
		})
		if err != nil {
			return err
		}
		if asJSON {
			err = writeJSON(c.OutOrStdout(), r)
		} else {
			err = printReport(c.OutOrStdout(), r)
		}
		if err != nil {
			return err
		}
		return verdictOf(r)
	}
	return c
}

func verdictOf(r *doctor.Report) error {
	switch {
	case r.Problems > 0:
		return verdict(exitProblems)
	case r.Warnings > 0 || r.Unknown > 0:
		return verdict(exitWarnings)
	}
	return nil
}

// printReport prints a line for each finding, and under it what to do.
func printReport(w io.Writer, r *doctor.Report) error {
	var b strings.Builder
	width := 0
	for _, f := range r.Findings {
		width = max(width, len(f.Check))
	}
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%-7s  %-*s  %s\n", f.Severity, width, f.Check, shown(f.Found))
		if f.Do != "" {
			fmt.Fprintf(&b, "%-7s  %-*s  → %s\n", "", width, "", shown(f.Do))
		}
	}
	fmt.Fprintf(&b, "\n%s, %s, %d not seen, in %s\n", several(r.Problems, "problem"), several(r.Warnings, "warning"), r.Unknown,
		r.Took.Round(time.Millisecond))
	_, err := io.WriteString(w, b.String())
	return err
}

func several(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// shown is a text without what a terminal would obey: programs choose their names, and receivers the words of a failure.
func shown(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsGraphic(r) {
			return r
		}
		return utf8.RuneError
	}, s)
}
