package pawl

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/internal/cli"
	"github.com/pawlhq/pawl/schema"
	"github.com/pawlhq/pawl/workflow"
)

// Exit codes of [Execute].
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
)

// Flags that every command has.
const (
	flagDatabase = "database"
	flagSchema   = "schema"
)

// Command is the command line of [Main], for a program that adds commands of
// its own. Run it with [Execute].
func Command(workflows ...workflow.Source) *cobra.Command {
	root := &cobra.Command{
		Use:   filepath.Base(os.Args[0]),
		Short: "A workflow engine on PostgreSQL: one intent, one durable effect, the same answer on every retry.",
		Args:  cli.NoSuchCommand,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },

		SuggestionsMinimumDistance: 2, // typing mistakes
		CompletionOptions:          cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	flags := root.PersistentFlags()
	flags.String(flagDatabase, os.Getenv("DATABASE_URL"),
		"connection string of PostgreSQL; default is DATABASE_URL, or else a private server that is started for it")
	flags.Lookup(flagDatabase).DefValue = "" // a help text must not show a password
	flags.String(flagSchema, schema.Default, "PostgreSQL schema of the tables")
	root.AddCommand(
		serveCommand(workflows),
		migrateCommand(),
		verifyCommand(workflows),
		opsCommand(workflows),
		diagramCommand(workflows),
		versionCommand(),
	)
	return root
}

// UsageError is a mistake in how a command was called, its field Err. [Execute]
// answers it with the exit code 2.
type UsageError = cli.UsageError

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
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &UsageError{Err: err} })
	markUsage(root)
	ran, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	if _, ok := errors.AsType[*UsageError](err); ok {
		root.PrintErrf("%s: %v (see %q)\n", root.Name(), err, ran.CommandPath()+" --help")
		return exitUsage
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = errors.New("interrupted")
	}
	root.PrintErrf("%s: %v\n", root.Name(), err)
	return exitFailure
}

// markUsage makes usage errors of what the commands say about their arguments.
func markUsage(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return &UsageError{Err: err}
			}
			return nil
		}
	}
	for _, child := range c.Commands() {
		markUsage(child)
	}
}

// ConfigOf is the configuration that the flags of a command ask for, for a
// command that was added to [Command].
func ConfigOf(c *cobra.Command, workflows ...workflow.Source) Config {
	return Config{
		Workflows: workflows,
		Database:  c.Flag(flagDatabase).Value.String(),
		Schema:    c.Flag(flagSchema).Value.String(),
	}
}
