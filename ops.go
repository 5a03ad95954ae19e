package pawl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/schema"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func opsCommand(workflows []workflow.Source) *cobra.Command {
	o := &ops{workflows: workflows}
	c := &cobra.Command{
		Use:   "ops",
		Short: "See how everything stands, and see to what does not go on by itself",
		Long: `See how everything stands, and see to what does not go on by itself.

These commands work on the database, whether or not a node serves. What they
change, the nodes notice within seconds. Times are UTC.`,
		Args: noSuchCommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.PersistentFlags().BoolVar(&o.json, "json", false, "print JSON instead of a table")
	c.AddCommand(o.keysCommand(), o.stuckCommand(), o.retryCommand(), o.resolveCommand(), o.abandonCommand(), o.pauseCommand(), o.resumeCommand(), o.pausedCommand(),
		o.sinksCommand(), o.inboxCommand(), o.retentionCommand())
	return c
}

// ops are the commands for operators.
type ops struct {
	workflows []workflow.Source
	json      bool
}

// run does something with an engine on the command's database that is not
// started.
func (o *ops) run(c *cobra.Command, do func(ctx context.Context, e *engine.Engine) error) error {
	config := ConfigOf(c, o.workflows...)
	config.Log = slog.New(slog.NewTextHandler(c.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelWarn})) // how it connects is nothing to tell
	return withEngine(c.Context(), config, do)
}

// runStarted does something with one that takes part as a node meanwhile, and
// works on nothing that waits.
func (o *ops) runStarted(c *cobra.Command, do func(ctx context.Context, e *engine.Engine) error) error {
	return o.run(c, func(ctx context.Context, e *engine.Engine) error {
		if err := e.Start(ctx); err != nil {
			return err
		}
		return do(ctx, e)
	})
}

// withEngine does something with an engine that is not started.
func withEngine(ctx context.Context, c Config, do func(ctx context.Context, e *engine.Engine) error) (err error) {
	if c, err = c.withDefaults(); err != nil {
		return err
	}
	d, err := openDatabase(ctx, c.Database, c.Log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	if err := schema.Check(ctx, d.pool, c.Schema); err != nil {
		return err
	}
	e, err := engine.New(engine.Config{Pool: d.pool, Workflows: c.Workflows, Schema: c.Schema, Log: c.Log,
		InFlight: engine.InFlightConfig{Workers: -1}, Retention: engine.RetentionConfig{Off: true}})
	if err != nil {
		return err
	}
	defer func() {
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		e.Stop(stopping)
	}()
	return do(ctx, e)
}

// checkTenant refuses a tenant's name that cannot be.
func checkTenant(tenant string) error {
	if err := transitions.CheckTenant(tenant); err != nil {
		return usagef("--tenant: %w", err)
	}
	return nil
}

// printJSON prints a value, with the names that REST has for it.
func printJSON[T any](w io.Writer, v T) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// printTable prints rows in columns. Those of the header that begin with a ">"
// have numbers, which stand on the right.
func printTable(w io.Writer, header []string, rows [][]string) error {
	widths := make([]int, len(header))
	for i, h := range header {
		widths[i] = len(strings.TrimPrefix(h, ">"))
		for _, row := range rows {
			widths[i] = max(widths[i], len(row[i]))
		}
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for n := -1; n < len(rows); n++ {
		cells := make([]string, len(header))
		for i, h := range header {
			name, number := strings.CutPrefix(h, ">")
			if cells[i] = name; n >= 0 {
				cells[i] = rows[n][i]
			}
			if number {
				cells[i] = fmt.Sprintf("%*s", widths[i], cells[i])
			}
		}
		if _, err := fmt.Fprintln(t, strings.TrimRight(strings.Join(cells, "\t"), "\t")); err != nil {
			return err
		}
	}
	return t.Flush()
}

// moment is a time as a table shows it.
func moment(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

// since is how long before now something was, in the two largest units.
func since(now, then time.Time) string {
	if then.IsZero() {
		return "-"
	}
	d := max(now.Sub(then), 0)
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%dd%dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
	case d >= time.Hour:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	case d >= time.Minute:
		return fmt.Sprintf("%dm%ds", d/time.Minute, d%time.Minute/time.Second)
	}
	return fmt.Sprintf("%ds", d/time.Second)
}

// orNone is a text as a table shows it: in one line, and visible.
func orNone(s string) string {
	if s == "" {
		return "-"
	}
	return strings.Join(strings.Fields(s), " ")
}
