// Command bench measures how fast commands become durable, compared with the same rows written by plain SQL: one transaction for each
// command, and large transactions. The tables are in the schema pawl_bench, which is dropped at the end. Nothing else should use the server
// during a run.
//
//	make bench
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"regexp"
	"runtime/debug"
	"strconv"
	"syscall"

	"github.com/pawlhq/pawl/bench"
	"github.com/pawlhq/pawl/internal/localpg"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400) // as pawl does
	}
	os.Exit(execute(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// execute returns the exit code: 1 for a failure, 2 for invalid arguments.
func execute(ctx context.Context, args []string, out, errs io.Writer) int {
	logger := log.New(errs, "", 0)
	c := bench.Config{Progress: func(line string) { logger.Print(line) }}
	flags := flagsOf(&c)
	flags.SetOutput(errs)
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2 // Parse has printed the error
	case flags.NArg() > 0:
		logger.Printf("bench: unexpected argument %q", flags.Arg(0))
		return 2
	}
	if bench.IsNode() {
		err = bench.RunNode(ctx)
	} else {
		err = run(ctx, c, out, logger)
	}
	if err != nil {
		logger.Print(err)
		return 1
	}
	return 0
}

func flagsOf(c *bench.Config) *flag.FlagSet {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.StringVar(&c.URL, "database", os.Getenv("DATABASE_URL"),
		"connection `string` of PostgreSQL; defaults to DATABASE_URL, or to a private server for the run")
	flags.IntVar(&c.Rounds, "rounds", 0, "how often each scenario is run (default 3)")
	flags.DurationVar(&c.Duration, "duration", 0, "how long each scenario is measured in a round (default 3s)")
	flags.Var((*large)(&c.Large), "large", "measure on full tables and on empty tables; --large=`N` loads N commands (default 10,000,000)")
	flags.IntVar(&c.Aged, "aged", 0, "`number` of commands before the scenarios with an old snapshot (default 20,000)")
	flags.IntVar(&c.Migrated, "migrated", 0, "`number` of instances that are migrated during the run (default 10,000)")
	flags.StringVar(&c.NATS, "nats", os.Getenv("NATS_URL"),
		"`URL` of a server with JetStream; defaults to NATS_URL; without it the scenarios that need one are omitted")
	flags.Func("only", "a regular `expression` for the names of the scenarios to run", func(s string) (err error) {
		c.Only, err = regexp.Compile(s)
		return err
	})
	return flags
}

// large is a number of commands that may be omitted: --large is --large=10000000.
type large int

func (l *large) String() string   { return strconv.Itoa(int(*l)) }
func (l *large) IsBoolFlag() bool { return true }

func (l *large) Set(s string) error {
	n, err := strconv.Atoi(s)
	if s == "true" {
		n, err = 10_000_000, nil
	}
	*l = large(n)
	return err
}

// run measures on the database of c, or else on a private server that is as durable as a real one.
func run(ctx context.Context, c bench.Config, out io.Writer, logger *log.Logger) error {
	if c.URL != "" {
		return bench.Run(ctx, c, out)
	}
	options := localpg.Options{
		Ephemeral: true,
		Settings:  map[string]string{"fsync": "on", "shared_preload_libraries": "pg_stat_statements"},
		Log:       logger.Printf,
	}
	if c.Large > 0 {
		options.Settings["shared_buffers"] = "8GB" // pages beyond it are read from the system's cache one by one
	}
	server, err := localpg.Start(ctx, options)
	if err != nil {
		return fmt.Errorf("start a private PostgreSQL: %w", err)
	}
	c.URL = server.URL()
	return errors.Join(bench.Run(ctx, c, out), server.Stop())
}
