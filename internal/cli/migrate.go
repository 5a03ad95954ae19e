package cli

import (
	"fmt"
	"io"
	"log/slog"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/internal/cli/flags"
	"github.com/pawlhq/pawl/internal/service"
	"github.com/pawlhq/pawl/schema"
)

func migrateCommand() *cobra.Command {
	up := upCommand()
	c := flags.Group("migrate", "Bring the tables up to date, or see what that would do", statusCommand(), planCommand(), up)
	c.Long = `Bring the tables up to date, each step in a transaction of its own; alone it is
"migrate up". Several nodes may do it at once. "serve" does it too; run this
first where the program that serves may not change tables.`
	c.Flags().AddFlagSet(up.Flags())
	c.RunE = up.RunE
	return c
}

func upCommand() *cobra.Command {
	c := &cobra.Command{Use: "up", Short: "Bring the tables up to date", Args: cobra.NoArgs}
	output := outputOf(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		asJSON, err := output()
		if err != nil {
			return err
		}
		config := ConfigOf(c)
		config.Log = logOf(c, slog.LevelInfo)
		applied, err := service.Migrate(c.Context(), config)
		if err != nil {
			return err
		}
		if asJSON {
			return writeJSON(c.OutOrStdout(), map[string]any{"schema": config.Schema, "version": len(schema.Migrations), "applied": applied})
		}
		_, err = fmt.Fprintf(c.OutOrStdout(), "schema %s is at version %d, %d applied now\n", config.Schema, len(schema.Migrations), applied)
		return err
	}
	return c
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
}

func standingOf(name string, s schema.Status) standing {
	all := standing{Schema: name, Version: s.Version(), Program: len(schema.Migrations), Migrations: []migration{}}
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
	case s.Version > s.Program:
		return verdict(exitProblems)
	case s.Version < s.Program:
		return verdict(exitWarnings)
	}
	return nil
}

func statusCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "status",
		Short: "Say which version the tables have, and what is pending",
		Long: `Say which version the tables have, which one this program needs, and what is
pending. Nothing is changed. The exit code is 0 where they are the same, 3 where
migrations are pending, and 4 where the database is newer than this program.`,
		Args: cobra.NoArgs,
	}
	output := outputOf(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		asJSON, err := output()
		if err != nil {
			return err
		}
		name, status, err := statusOf(c)
		if err != nil {
			return err
		}
		s := standingOf(name, status)
		if asJSON {
			err = writeJSON(c.OutOrStdout(), s)
		} else {
			err = s.print(c.OutOrStdout())
		}
		if err != nil {
			return err
		}
		return s.verdict()
	}
	return c
}

func statusOf(c *cobra.Command) (name string, s schema.Status, err error) {
	config := ConfigOf(c)
	config.Log = logOf(c, slog.LevelWarn)
	s, err = service.SchemaStatus(c.Context(), config)
	return config.Schema, s, err
}

func (s *standing) print(w io.Writer) error {
	_, err := fmt.Fprintf(w, "schema %s is at version %d, and this program needs %d\n\n", s.Schema, s.Version, s.Program)
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	lines := "number\tname\tapplied\n"
	for _, m := range s.Migrations {
		when := "pending"
		if m.AppliedAt != nil {
			when = m.AppliedAt.Format(time.RFC3339)
		}
		lines += fmt.Sprintf("%d\t%s\t%s\n", m.Number, m.Name, when)
	}
	if _, err := io.WriteString(t, lines); err != nil {
		return err
	}
	return t.Flush()
}

func planCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "plan",
		Short: "Print the SQL that would bring the tables up to date",
		Long: `Print the SQL that would bring the tables up to date, and do nothing. Where no
program may change tables, somebody else runs it:

  pawl migrate plan | psql --set ON_ERROR_STOP=1`,
		Args: cobra.NoArgs,
	}
	output := outputOf(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		asJSON, err := output()
		if err != nil {
			return err
		}
		name, status, err := statusOf(c)
		if err != nil {
			return err
		}
		if version := status.Version(); version > len(schema.Migrations) {
			return status.Err()
		}
		sql := schema.Plan(name, status.Version())
		if asJSON {
			s := standingOf(name, status)
			return writeJSON(c.OutOrStdout(), map[string]any{"schema": name, "version": s.Version, "program": s.Program, "sql": sql})
		}
		if sql == "" {
			sql = fmt.Sprintf("-- nothing is pending: schema %s is at version %d\n", name, status.Version())
		}
		_, err = io.WriteString(c.OutOrStdout(), sql)
		return err
	}
	return c
}
