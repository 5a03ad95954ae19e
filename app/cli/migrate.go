package cli

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/app/cli/flags"
	"github.com/pawlhq/pawl/app/cli/output"
	"github.com/pawlhq/pawl/app/service"
	"github.com/pawlhq/pawl/schema"
)

func migrateCommand() *cobra.Command {
	m := &migrate{}
	up := m.upCommand()
	c := flags.Group("migrate", "Bring the tables up to date, or see what that would do", m.statusCommand(), m.planCommand(), up,
		m.grantsCommand())
	c.Long = `Bring the tables up to date, each step in a transaction of its own; alone it is
"migrate up". Several nodes may do it at once. "serve" does it too; run this
first where the program that serves may not change tables, then "migrate grants".`
	flags.Output(c, &m.json)
	c.RunE = up.RunE
	return c
}

// migrate are the commands for the tables.
type migrate struct{ json bool }

// print shows a value as JSON, or as a text.
func (m *migrate) print(c *cobra.Command, v any, text func(w io.Writer) error) error {
	if m.json {
		return output.JSON(c.OutOrStdout(), v)
	}
	return text(c.OutOrStdout())
}

func (m *migrate) upCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "up",
		Short: "Bring the tables up to date",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			config := ConfigOf(c)
			config.Log = logOf(c, slog.LevelInfo)
			applied, err := service.Migrate(c.Context(), config)
			if err != nil {
				return err
			}
			at := len(schema.Migrations)
			return m.print(c, map[string]any{"schema": config.Schema, "version": at, "applied": applied}, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "schema %s is at version %d, %d applied now\n", config.Schema, at, applied)
				return err
			})
		},
	}
}

// migration is one of the database or of the program, as JSON has it.
type migration struct {
	Number    int        `json:"number"`
	Name      string     `json:"name"`
	AppliedAt *time.Time `json:"applied_at,omitempty"` // not there: it is pending
}

// standing is how far a database is, as JSON has it.
type standing struct {
	Schema     string      `json:"schema"`
	Version    int         `json:"version"`
	Program    int         `json:"program"`
	Migrations []migration `json:"migrations"`

	err error // what is wrong with it
}

func standingOf(name string, s schema.Status) *standing {
	all := &standing{Schema: name, Version: s.Version(), Program: len(schema.Migrations), Migrations: []migration{}, err: s.Err()}
	for _, m := range s.Applied {
		at := m.AppliedAt.UTC()
		all.Migrations = append(all.Migrations, migration{m.Number, m.Name, &at})
	}
	for _, m := range s.Pending {
		all.Migrations = append(all.Migrations, migration{m.Number, m.Name, nil})
	}
	return all
}

// verdict is what a script is told.
func (s *standing) verdict() error {
	switch {
	case s.err != nil && !errors.Is(s.err, schema.ErrBehind):
		return &flags.Exit{Code: flags.ExitBroken, Err: s.err}
	case s.Version < s.Program:
		return &flags.Exit{Code: flags.ExitToDo, Err: fmt.Errorf("pending migrations: %d", s.Program-s.Version)}
	}
	return nil
}

func (m *migrate) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Say which version the tables have, and what is pending",
		Long: `Say which version the tables have, which one this program needs, and what is
pending. Nothing is changed. The exit code is 3 where migrations are pending, and
4 where this program cannot work with the tables: they are newer than it, or
another program's.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			name, status, err := statusOf(c)
			if err != nil {
				return err
			}
			s := standingOf(name, status)
			if err := m.print(c, s, s.print); err != nil {
				return err
			}
			return s.verdict()
		},
	}
}

func statusOf(c *cobra.Command) (name string, s schema.Status, err error) {
	config := ConfigOf(c)
	config.Log = logOf(c, slog.LevelWarn)
	if s, err = service.SchemaStatus(c.Context(), config); errors.Is(err, schema.ErrForeign) {
		err = &flags.Exit{Code: flags.ExitBroken, Err: err}
	}
	return config.Schema, s, err
}

func (s *standing) print(w io.Writer) error {
	_, err := fmt.Fprintf(w, "schema %s is at version %d, and this program needs %d\n\n", s.Schema, s.Version, s.Program)
	if err != nil {
		return err
	}
	return output.Table(w, []string{">number", "name", "applied"}, s.Migrations, func(m *migration) []string {
		when := "pending"
		if m.AppliedAt != nil {
			when = output.Moment(*m.AppliedAt)
		}
		return []string{fmt.Sprint(m.Number), m.Name, when}
	})
}

func (m *migrate) planCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "plan",
		Short: "Print the SQL that would bring the tables up to date",
		Long: `Print the SQL that would bring the tables up to date, and do nothing. Where no
program may change tables, somebody else runs it:

  pawl migrate plan | psql --set ON_ERROR_STOP=1`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			name, status, err := statusOf(c)
			if err != nil {
				return err
			}
			at := status.Version()
			if err := status.Err(); err != nil && !errors.Is(err, schema.ErrBehind) {
				return &flags.Exit{Code: flags.ExitBroken, Err: err}
			}
			sql := schema.Plan(name, at)
			plan := map[string]any{"schema": name, "version": at, "program": len(schema.Migrations), "sql": sql}
			return m.print(c, plan, func(w io.Writer) error {
				if sql == "" {
					sql = fmt.Sprintf("-- nothing is pending: schema %s is at version %d\n", name, at)
				}
				_, err := io.WriteString(w, sql)
				return err
			})
		},
	}
}

// grants is what "migrate grants" answers, as JSON has it.
type grants struct {
	Schema     string   `json:"schema"`
	Role       string   `json:"role"`
	Applied    bool     `json:"applied"`
	Statements []string `json:"statements"`
}

func (g *grants) print(w io.Writer) error {
	for _, sql := range g.Statements {
		if _, err := fmt.Fprintln(w, sql+";"); err != nil {
			return err
		}
	}
	return nil
}

func (m *migrate) grantsCommand() *cobra.Command {
	dryRun := false
	c := &cobra.Command{
		Use:   "grants ROLE",
		Short: "Grant a role the rights of a node",
		Long: `Grant a role the rights that "serve" needs on tables that another role owns, and
print the statements. Run it as the owner of the tables, after each "migrate up".
The role must exist. With --dry-run nothing is changed.`,
		Args: flags.Operands("ROLE"),
		RunE: func(c *cobra.Command, args []string) error {
			config := ConfigOf(c)
			config.Log = logOf(c, slog.LevelWarn)
			list, err := service.Grant(c.Context(), config, args[0], dryRun)
			if err != nil {
				return err
			}
			g := &grants{Schema: config.Schema, Role: args[0], Applied: !dryRun, Statements: list}
			return m.print(c, g, g.print)
		},
	}
	c.Flags().BoolVar(&dryRun, "dry-run", false, "print the statements only")
	return c
}
