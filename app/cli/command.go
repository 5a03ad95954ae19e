// Package cli is the command line of a program: the flags and commands that all programs have. Operator commands are in ops.
package cli

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/app/cli/flags"
	"github.com/pawlhq/pawl/app/cli/ops"
	"github.com/pawlhq/pawl/app/cli/output"
	"github.com/pawlhq/pawl/app/cli/remote"
	"github.com/pawlhq/pawl/app/service"
	"github.com/pawlhq/pawl/app/usage"
	"github.com/pawlhq/pawl/auth/apikey"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/schema"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Flags that every command has.
const (
	flagDatabase = "database"
	flagSchema   = "schema"
	flagFormat   = "log-format"
	flagLevel    = "log-level"
)

// initial is the logger of a program that has set none.
var initial = slog.Default()

// CommandLine returns the root command; see pawl.CommandLine.
func CommandLine(workflows ...workflow.Source) *cobra.Command {
	root := flags.Group(filepath.Base(os.Args[0]),
		"A workflow engine on PostgreSQL: one intent, one durable effect, the same answer on every retry.",
		serveCommand(workflows), migrateCommand(), doctorCommand(workflows), verifyCommand(workflows), ops.Command(onDatabase(workflows), dryRun(workflows)),
		diagramCommand(workflows), flags.Group("auth", "Check the grants of a credential", canICommand()), keysCommand(),
		flags.Group("tickets", "Manage the signing keys of browser tickets", rotateTicketsCommand()), versionCommand())
	root.AddCommand(remote.Commands(defaultServer, onDatabase(workflows))...)
	root.Long = root.Short + "\n\nExit codes:\n" + flags.ExitCodes()
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) error {
		if err := flags.NotEmpty(c, flagSchema); err != nil {
			return err
		}
		return checkLog(c)
	}
	all := root.PersistentFlags()
	all.String(flagDatabase, os.Getenv("DATABASE_URL"),
		"connection string of PostgreSQL; defaults to DATABASE_URL, or a private server")
	all.Lookup(flagDatabase).DefValue = "" // a help text must not show a password
	all.String(flagSchema, schema.Default, "PostgreSQL schema of the tables")
	all.String(flagFormat, "", "log format: text or json; defaults to text, or the logger of the program")
	all.String(flagLevel, "", "log level: debug, info, warn or error; defaults to info for serve, warn for other commands")
	return root
}

// Execute runs the command that the process's arguments name, prints a failure to standard error, and returns the exit code. SIGINT and
// SIGTERM cancel the command's context; a second one ends the process at once.
func Execute(root *cobra.Command) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	// A closed pipe is a write error instead of a signal that kills the process.
	signal.Ignore(syscall.SIGPIPE)
	if os.Getenv("GOGC") == "" {
		// The live heap is small and the allocation rate is high.
		debug.SetGCPercent(400)
	}
	return execute(ctx, root)
}

func execute(ctx context.Context, root *cobra.Command) int {
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usage.Error{Err: err} })
	markUsage(root)
	ran, err := root.ExecuteContextC(ctx)
	if err == nil {
		return flags.ExitOK
	}
	if _, ok := errors.AsType[*usage.Error](err); ok {
		root.PrintErrf("%s: %s (see %q)\n", root.Name(), output.Text(err.Error()), ran.CommandPath()+" --help")
		return flags.ExitUsage
	}
	code := flags.ExitFailure
	if e, ok := errors.AsType[*flags.Exit](err); ok {
		code = e.Code
	} else if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = errors.New("interrupted")
	}
	root.PrintErrf("%s: %s\n", root.Name(), output.Text(err.Error()))
	return code
}

// markUsage turns errors about arguments into usage errors.
func markUsage(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return &usage.Error{Err: err}
			}
			return nil
		}
	}
	for _, child := range c.Commands() {
		markUsage(child)
	}
}

// checkLog validates the format and the level of the log.
func checkLog(c *cobra.Command) error {
	if format := c.Flag(flagFormat).Value.String(); !slices.Contains([]string{"", "text", "json"}, format) {
		return usage.Errorf("--%s is text or json, not %q", flagFormat, format)
	}
	_, err := levelOf(c, slog.LevelInfo)
	return err
}

// levelOf returns the level of the flag, or else a default.
func levelOf(c *cobra.Command, level slog.Level) (slog.Level, error) {
	text := c.Flag(flagLevel).Value.String()
	if text == "" {
		return level, nil
	}
	if err := level.UnmarshalText([]byte(text)); err != nil || strings.ContainsAny(text, "+-") {
		return level, usage.Errorf("--%s is debug, info, warn or error, not %q", flagLevel, text)
	}
	return level, nil
}

// logOf returns the logger of a command: the program's own if it has set one and no flag selects another. Otherwise it writes lines to
// standard error, from this level or the level of the flag.
func logOf(c *cobra.Command, level slog.Level) *slog.Logger {
	format := c.Flag(flagFormat).Value.String()
	if own := slog.Default(); own != initial && format == "" && c.Flag(flagLevel).Value.String() == "" {
		return own
	}
	if asked, err := levelOf(c, level); err == nil { // checked before
		level = asked
	}
	options := &slog.HandlerOptions{Level: level}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(c.ErrOrStderr(), options))
	}
	return slog.New(slog.NewTextHandler(c.ErrOrStderr(), options))
}

// ConfigOf returns the configuration of the flags of all commands.
func ConfigOf(c *cobra.Command, workflows ...workflow.Source) service.Config {
	return service.Config{
		Workflows: workflows,
		Database:  c.Flag(flagDatabase).Value.String(),
		Schema:    c.Flag(flagSchema).Value.String(),
	}
}

// configOf returns the configuration of the flags, with a logger.
func configOf(c *cobra.Command, level slog.Level, workflows ...workflow.Source) service.Config {
	config := ConfigOf(c, workflows...)
	config.Log = logOf(c, level)
	return config
}

// onDatabase runs the API on the database of a command.
func onDatabase(workflows []workflow.Source) flags.Database {
	return func(c *cobra.Command, u flags.Use, do func(context.Context, *http.Client) error) error {
		return service.WithAPI(c.Context(), configOf(c, slog.LevelWarn, workflows...), service.Use(u), do)
	}
}

// dryRun decides an operation on the database of a command.
func dryRun(workflows []workflow.Source) ops.DryRun {
	return func(c *cobra.Command, cmd transitions.Command, op transitions.Operation) (r transitions.Receipt, after *transitions.Instance, err error) {
		err = service.WithEngine(c.Context(), configOf(c, slog.LevelWarn, workflows...), func(ctx context.Context, e *engine.Engine) error {
			if cmd.BusinessKey != "" {
				inst, err := e.Read().InstanceByKey(ctx, cmd.Tenant, cmd.Workflow, cmd.BusinessKey)
				if err != nil {
					return err
				}
				cmd.Instance = inst.ID
			}
			r, after, err = e.Admin().DryRunOperation(ctx, transitions.Command{Tenant: cmd.Tenant, Instance: cmd.Instance, Key: cmd.Key, Actor: cmd.Actor}, op)
			return err
		})
		return r, after, err
	}
}

func keysCommand() *cobra.Command {
	return ops.KeysCommand(func(c *cobra.Command, do func(context.Context, *apikey.Table) error) error {
		return service.WithKeys(c.Context(), configOf(c, slog.LevelWarn), do)
	})
}
