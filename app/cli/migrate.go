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
	c := flags.Group("migrate", "Migrate the database schema", m.statusCommand(), m.planCommand(), up,
		m.grantsCommand())
	c.Long = `Migrate the database schema. Without a subcommand it is "migrate up". "serve" migrates
too; run this first if the role of the nodes may not change tables, then
"migrate grants".`
	flags.Output(c, &m.json)
	c.RunE = up.RunE
	return c
}

// migrate has the commands on the schema.
type migrate struct{ json bool }

func (m *migrate) upCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "up",
		Short: "Apply pending migrations",
		Long:  `Apply pending migrations, each in its own transaction. Concurrent calls are safe.`,
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			config := configOf(c, slog.LevelInfo)
			applied, err := service.Migrate(c.Context(), config)
			if err != nil {
				return err
			}
			at := len(schema.Migrations)
			return output.Print(c, m.json, map[string]any{"schema": config.Schema, "version": at, "applied": applied}, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "schema %s is at version %d, %d applied now\n", config.Schema, at, applied)
				return err
			})
		},
	}
}

// migration is a migration in JSON.
type migration struct {
	Number    int        `json:"number"`
	Name      string     `json:"name"`
	AppliedAt *time.Time `json:"applied_at,omitempty"` // nil if it is pending
}

// standing is the state of a schema in JSON.
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

func (m *migrate) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show the schema version and pending migrations",
		Long: `Show the version of the schema, the version that this program needs, and pending
migrations. The exit code is 3 if migrations are pending, and 4 if the schema is newer
than this program or belongs to another program.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			name, status, err := statusOf(c)
			if err != nil {
				return err
			}
			s := standingOf(name, status)
			if err := output.Print(c, m.json, s, s.print); err != nil {
				return err
			}
			switch {
			case s.err != nil && !errors.Is(s.err, schema.ErrBehind):
				return &flags.Exit{Code: flags.ExitBroken, Err: s.err}
			case s.Version < s.Program:
				return &flags.Exit{Code: flags.ExitToDo, Err: fmt.Errorf("pending migrations: %d", s.Program-s.Version)}
			}
			return nil
		},
	}
}

func statusOf(c *cobra.Command) (name string, s schema.Status, err error) {
	config := configOf(c, slog.LevelWarn)
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
		Short: "Print the SQL of pending migrations",
		Long: `Print the SQL of pending migrations without applying them. To apply them with another
role:

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
			return output.Print(c, m.json, plan, func(w io.Writer) error {
				if sql == "" {
					sql = fmt.Sprintf("-- nothing is pending: schema %s is at version %d\n", name, at)
				}
				_, err := io.WriteString(w, sql)
				return err
			})
		},
	}
}

// grants is the output of "migrate grants" in JSON.
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
		Long: `Grant a role the rights that "serve" needs, and print the statements. Run it as the
owner of the tables, after each "migrate up". The role must exist.`,
		Args: flags.Operands("ROLE"),
		RunE: func(c *cobra.Command, args []string) error {
			config := configOf(c, slog.LevelWarn)
			list, err := service.Grant(c.Context(), config, args[0], dryRun)
			if err != nil {
				return err
			}
			g := &grants{Schema: config.Schema, Role: args[0], Applied: !dryRun, Statements: list}
			return output.Print(c, m.json, g, g.print)
		},
	}
	c.Flags().BoolVar(&dryRun, "dry-run", false, "print the statements only")
	return c
}
