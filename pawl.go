// Package pawl is the front door: what a program imports to turn workflow
// definitions into a whole service with its command line.
//
//	func main() { pawl.Main(order.Workflow(payments)) }
//
// The program then knows the commands serve, ops, keys, tickets, auth, migrate,
// verify, diagram and version, and those that ask a server or work on the database:
// submit, get, list, history, can, watch and tail. With no DATABASE_URL it runs a
// private PostgreSQL.
//
// A program that needs more than that composes the same parts itself:
// [CommandLine] to add commands, [Start] to run the service from its own main, or
// package engine for the engine alone, which links neither a command line nor an
// HTTP interface nor the client of a broker.
package pawl

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/app/cli"
	"github.com/pawlhq/pawl/app/usage"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Aliases of the types that most programs need. Their functions and constants are in their packages.
type (
	// Engine runs workflows; [Service.Engine] is a service's.
	Engine = engine.Engine

	// Command asks for one transition of one instance; [Engine.Submit] takes it.
	Command = transitions.Command

	// Options are the rarely used fields of a command.
	Options = transitions.Options

	// Ref names a command by tenant, scope and key.
	Ref = transitions.Ref

	// Receipt is the answer to a command, the same for every retry of it.
	Receipt = transitions.Receipt

	// Event is what a receiver is told of a transition.
	Event = transitions.Event

	// Error is a refusal or a failure with a stable code and a message that may be
	// shown. [workflow.CodeOf] tells the code of any error.
	Error = workflow.Error

	// Code is the stable name of a refusal or a failure, one of [workflow.Codes].
	Code = workflow.Code

	// UsageError is a mistake in how a command was called or a service configured,
	// its field Err. [Execute] answers it with the exit code 2.
	UsageError = usage.Error
)

// Main runs the command line over the given workflows and ends the process: 0
// when all went well, 1 for a failure, 2 for a mistake in how it was called, 5 for
// what a server has refused, 6 for what it has not answered.
func Main(workflows ...workflow.Source) {
	os.Exit(Execute(CommandLine(workflows...)))
}

// CommandLine is the command line of [Main], for a program that adds commands of
// its own. Run it with [Execute].
func CommandLine(workflows ...workflow.Source) *cobra.Command {
	return cli.CommandLine(workflows...)
}

// Execute runs the command that the process's arguments name, prints a failure
// to standard error, and returns the exit code. SIGINT and SIGTERM cancel the
// command's context; a second one ends the process at once.
func Execute(root *cobra.Command) int { return cli.Execute(root) }

// ConfigOf is the configuration that the flags --database and --schema ask for,
// for a command that was added to [CommandLine].
func ConfigOf(c *cobra.Command, workflows ...workflow.Source) Config {
	return cli.ConfigOf(c, workflows...)
}
