// Package cli is the command line of a program: what it is called with, and the
// commands that every program has. The commands for operators are in ops.
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

// CommandLine is the command with all the others; see pawl.CommandLine.
func CommandLine(workflows ...workflow.Source) *cobra.Command {
	root := flags.Group(filepath.Base(os.Args[0]),
		"A workflow engine on PostgreSQL: one intent, one durable effect, the same answer on every retry.",
		serveCommand(workflows), migrateCommand(), doctorCommand(workflows), verifyCommand(workflows), ops.Command(onDatabase(workflows), dryRun(workflows)),
		diagramCommand(workflows), authCommand(), keysCommand(), ticketsCommand(), versionCommand())
	root.AddCommand(remote.Commands(defaultServer, onDatabase(workflows))...)
	root.Long = root.Short + "\n\nThe exit codes of all commands:\n" + flags.ExitCodes()
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) error {
		if err := flags.NotEmpty(c, flagSchema); err != nil {
			return err
		}
		return checkLog(c)
	}
	all := root.PersistentFlags()
	all.String(flagDatabase, os.Getenv("DATABASE_URL"),
		"connection string of PostgreSQL; default is DATABASE_URL, or else a private server that is started for it")
	all.Lookup(flagDatabase).DefValue = "" // a help text must not show a password
	all.String(flagSchema, schema.Default, "PostgreSQL schema of the tables")
	all.String(flagFormat, "", "format of the log: text or json; default is text, or the logger that the program has set")
	all.String(flagLevel, "", "lowest level of the log: debug, info, warn or error; default is info for serve, and warn for others")
	return root
}

// Execute runs the command that the process's arguments name, prints a failure
// to standard error, and returns the exit code. SIGINT and SIGTERM cancel the
// command's context; a second one ends the process at once.
func Execute(root *cobra.Command) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	// Where the output goes to a program that ends, writing fails and the command
	// stops in order, instead of the process being killed.
	signal.Ignore(syscall.SIGPIPE)
	if os.Getenv("GOGC") == "" {
		// What is alive is small, and what passes through is much: it pays to
		// collect garbage less often than by default.
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

// markUsage makes usage errors of what the commands say about their arguments.
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

// checkLog refuses a format or a level of the log that there is not.
func checkLog(c *cobra.Command) error {
	if format := c.Flag(flagFormat).Value.String(); !slices.Contains([]string{"", "text", "json"}, format) {
		return usage.Errorf("--%s is text or json, not %q", flagFormat, format)
	}
	_, err := levelOf(c, slog.LevelInfo)
	return err
}

// levelOf returns the lowest level of the log: the one that is asked for, or a default.
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

// ConfigOf is the configuration that the flags of all commands ask for.
func ConfigOf(c *cobra.Command, workflows ...workflow.Source) service.Config {
	return service.Config{
		Workflows: workflows,
		Database:  c.Flag(flagDatabase).Value.String(),
		Schema:    c.Flag(flagSchema).Value.String(),
	}
}

// onDatabase runs the API on the database of a command.
func onDatabase(workflows []workflow.Source) flags.Database {
	return func(c *cobra.Command, u flags.Use, do func(context.Context, *http.Client) error) error {
		config := ConfigOf(c, workflows...)
		config.Log = logOf(c, slog.LevelWarn)
		return service.WithAPI(c.Context(), config, service.Use(u), do)
	}
}

// dryRun decides an operation on the database of a command.
func dryRun(workflows []workflow.Source) ops.DryRun {
	return func(c *cobra.Command, cmd transitions.Command, op transitions.Operation) (r transitions.Receipt, after *transitions.Instance, err error) {
		config := ConfigOf(c, workflows...)
		config.Log = logOf(c, slog.LevelWarn)
		err = service.WithEngine(c.Context(), config, func(ctx context.Context, e *engine.Engine) error {
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
		config := ConfigOf(c)
		config.Log = logOf(c, slog.LevelWarn)
		return service.WithKeys(c.Context(), config, do)
	})
}
