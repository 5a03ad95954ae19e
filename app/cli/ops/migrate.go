package ops

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/app/cli/flags"
	"github.com/pawlhq/pawl/app/cli/output"
	"github.com/pawlhq/pawl/app/progress"
	"github.com/pawlhq/pawl/app/usage"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
)

func (o *ops) migrateCommand() *cobra.Command {
	var a author
	var dryRun, background bool
	var r inspect.MigrationRequest
	c := &cobra.Command{
		Use:   "migrate WORKFLOW FROM TO",
		Short: "Take all instances of a version that are under way to another version",
		Long: `Take all instances of a version that are under way to another version, by the plan
that the workflow declares for it: of all tenants, in the background, by one of
the nodes that serve. Each is a transition of its own, audited with who does it
and why. What the plan does not take stays as it is, and is counted with the
reason. This command shows how far it is, and may be left: the migration goes on.

If new instances begin with another version than FROM, the migration also takes those
that are committed after it was asked for, and ends when none is left. If they begin
with FROM, it takes those that were there, and reports how many have begun since.

With --dry-run it reads every instance, says what would become of those in each
state, and writes nothing.`,
		Args: flags.Operands("WORKFLOW", "FROM", "TO"),
		RunE: func(c *cobra.Command, args []string) (err error) {
			r.Workflow, r.Actor, r.Reason = args[0], a.by, a.reason
			for i, into := range []*int{&r.From, &r.To} {
				if *into, err = strconv.Atoi(args[1+i]); err != nil || *into < 1 {
					return usage.Errorf("%q is not a version from 1 on", args[1+i])
				}
			}
			return o.run(c, func(ctx context.Context, e *engine.Engine) error {
				if dryRun {
					return o.previewMigration(ctx, c, e, r)
				}
				m, err := e.Admin().MigrateInstances(ctx, r)
				if err == nil {
					err = tellIdle(ctx, c.ErrOrStderr(), e, &m)
				}
				if err == nil && !background {
					m, err = awaitMigration(ctx, c, e, m)
				}
				if err != nil {
					return err
				}
				return o.print(c, m, func(w io.Writer) error { return printMigration(w, &m) })
			})
		},
	}
	a.flags(c)
	c.Flags().BoolVar(&dryRun, "dry-run", false, "say what would become of each instance, and write nothing")
	c.Flags().BoolVar(&background, "background", false, "do not wait for its end")
	c.Flags().IntVar(&r.PerSecond, "rate", 0, "how many instances are taken in a second, at most (default 500)")
	return c
}

func (o *ops) migrationsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "migrations",
		Short: "List the migrations of instances, and how far they are",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			header := []string{">id", "begun", "workflow", ">from", ">to", ">migrated", ">skipped", ">rejected", ">left", "state"}
			var plans []inspect.MigrationPlan
			return list(o, c, header, func(ctx context.Context, e *engine.Engine) (found []inspect.Migration, more bool, err error) {
				plans = e.Admin().MigrationPlans()
				all, err := e.Admin().Migrations(ctx)
				for i := range all {
					found = append(found, all[i])
				}
				return found, false, err
			}, func(m *inspect.Migration) []string {
				left := max(m.Expected-m.Migrated-m.Skipped-m.Rejected, m.Waiting, 0)
				if !m.EndedAt.IsZero() && m.StoppedAt.IsZero() {
					left = m.Waiting // it went through: how many were expected was about right
				}
				return []string{fmt.Sprint(m.ID), output.Moment(m.CreatedAt), m.Workflow, fmt.Sprint(m.From), fmt.Sprint(m.To), fmt.Sprint(m.Migrated),
					fmt.Sprint(m.Skipped), fmt.Sprint(m.Rejected), fmt.Sprint(left), migrationState(m)}
			}, func(list []inspect.Migration) any { return api.MigrationList{Migrations: list, Plans: plans} })
		},
	}
}

func (o *ops) stopMigrationCommand() *cobra.Command {
	var a author
	c := &cobra.Command{
		Use:   "stop-migration ID",
		Short: "End a migration of instances",
		Long: `End a migration of instances. What was migrated stays so. Who has asked first, and
why, is kept.`,
		Args: flags.Operands("ID"),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil || id < 1 {
				return usage.Errorf("%q is not the number of a migration", args[0])
			}
			return o.run(c, func(ctx context.Context, e *engine.Engine) error {
				m, err := e.Admin().StopMigration(ctx, id, a.by, a.reason)
				if err != nil {
					return err
				}
				return o.print(c, m, func(w io.Writer) error { return printMigration(w, &m) })
			})
		},
	}
	a.flags(c)
	return c
}

// tellIdle says so where no node serves that could do the migration.
func tellIdle(ctx context.Context, w io.Writer, e *engine.Engine, m *inspect.Migration) error {
	versions, err := e.Admin().Rollout(ctx)
	if err != nil {
		return err
	}
	know := map[string]int{} // how many of the two versions a node knows
	for _, v := range versions {
		if v.Workflow != m.Workflow || v.Version != m.From && v.Version != m.To {
			continue
		}
		for _, node := range v.Nodes {
			if know[node]++; know[node] == 2 {
				return nil
			}
		}
	}
	// As the meter's lines.
	_, _ = fmt.Fprintf(w, "migration %d waits: no node serves that knows both versions; it goes on when one does\n", m.ID)
	return nil
}

// pollEvery is how often it is asked how far a migration is.
const pollEvery = 500 * time.Millisecond

// awaitMigration shows how far a migration is, until its end.
func awaitMigration(ctx context.Context, c *cobra.Command, e *engine.Engine, m inspect.Migration) (inspect.Migration, error) {
	meter := progress.New(c.ErrOrStderr(), "migrate "+m.Workflow, "instances", m.Expected)
	defer meter.Stop()
	held := ""
	ticks := time.NewTicker(pollEvery)
	defer ticks.Stop()
	for m.EndedAt.IsZero() {
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return m, ctx.Err()
		}
		now, err := e.Admin().Migration(ctx, m.ID)
		if err != nil {
			return m, err
		}
		m = now
		meter.Set(m.Migrated + m.Skipped + m.Rejected)
		if m.Held != "" && m.Held != held {
			_, _ = fmt.Fprintf(c.ErrOrStderr(), "%d wait: %s\n", m.Left(), m.Held) // as the meter's lines
			held = m.Held
		}
	}
	return m, nil
}

func (o *ops) previewMigration(ctx context.Context, c *cobra.Command, e *engine.Engine, r inspect.MigrationRequest) error {
	p, err := e.Admin().PreviewMigration(ctx, r.Workflow, r.From, r.To)
	if err != nil {
		return err
	}
	return o.print(c, p, func(w io.Writer) error {
		header := []string{"state", "goes on in", ">instances", ">migrated", ">wait", ">rejected", ">overdue"}
		err := output.Table(w, header, p.States, func(s *inspect.MigrationState) []string {
			return []string{string(s.State), output.OrNone(string(s.To)), fmt.Sprint(s.Count), fmt.Sprint(s.Migrated), fmt.Sprint(s.Waiting),
				fmt.Sprint(s.Rejected), fmt.Sprint(s.Overdue)}
		})
		if err != nil {
			return err
		}
		if len(p.NodesWithout) > 0 {
			_, err := fmt.Fprintf(w, "\nnodes that serve and do not know version %d, so that nothing is migrated: %s\n",
				p.To, strings.Join(p.NodesWithout, ", "))
			if err != nil {
				return err
			}
		}
		return printRefusals(w, p.Refusals)
	})
}

func printMigration(w io.Writer, m *inspect.Migration) error {
	lines := [][2]string{{"migration", fmt.Sprintf("%d of %s, version %d to version %d", m.ID, m.Workflow, m.From, m.To)},
		{"state", migrationState(m)},
		{"migrated", fmt.Sprint(m.Migrated)}, {"skipped", fmt.Sprint(m.Skipped)}, {"rejected", fmt.Sprint(m.Rejected)}}
	if err := output.Lines(w, 10, lines); err != nil {
		return err
	}
	return printRefusals(w, m.Refusals)
}

func migrationState(m *inspect.Migration) string {
	switch {
	case !m.StoppedAt.IsZero() && m.StopReason != "":
		return "stopped by " + m.StoppedBy + ": " + m.StopReason
	case !m.StoppedAt.IsZero():
		return "stopped by " + m.StoppedBy
	case !m.EndedAt.IsZero() && m.Held != "":
		return "ended: " + m.Held
	case !m.EndedAt.IsZero():
		return "ended"
	case m.Held != "":
		return "held: " + m.Held
	}
	return "under way"
}

func printRefusals(w io.Writer, list []inspect.MigrationRefusal) error {
	header := []string{"state", ">instances", "one of them", "reason"}
	return output.Part(w, "rejected", false, header, list, func(r *inspect.MigrationRefusal) []string {
		reason, one := r.Reason, r.Instance.String()
		if reason == "" {
			reason, one = "other reasons", ""
		}
		return []string{output.OrNone(string(r.State)), fmt.Sprint(r.Count), output.OrNone(one), reason}
	})
}
