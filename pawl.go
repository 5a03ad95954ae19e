// Package pawl turns workflow definitions into a service with a command line.
//
//	func main() { pawl.Main(order.Workflow(payments)) }
//
// Without DATABASE_URL the program runs a private PostgreSQL. docs/cli.md lists its commands.
//
// A program that needs more composes the same parts: [Program] adds commands, [Start] runs the service from another main, and package
// engine is the engine alone, without a command line, an HTTP interface or the client of a broker.
package pawl

import (
	"context"
	"os"

	"github.com/pawlhq/pawl/app/cli"
	"github.com/pawlhq/pawl/app/service"
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
	// its field Err. [Main] exits with 2 for it.
	UsageError = usage.Error
)

// The command line.
type (
	// Program is a command line with commands of its own. Its method Run returns the exit code.
	Program = cli.Program

	// Subcommand is a command of a Program.
	Subcommand = cli.Subcommand

	// Call is one call of a Subcommand.
	Call = cli.Call
)

// Main runs the command line over the given workflows and ends the process. The exit code is 0 for success, 1 for a failure, 2 for a
// usage error, 5 for a refusal of a server, and 6 if it did not answer. SIGINT and SIGTERM cancel the command's context; a second one ends
// the process at once.
func Main(workflows ...workflow.Source) { os.Exit(Program{Workflows: workflows}.Run()) }

// DefaultAddress is where a Service listens unless its Config says otherwise.
const DefaultAddress = service.DefaultAddress

type (
	// Config is what a Service needs. Only its Workflows are required;
	// [service.Config] describes all of it.
	Config = service.Config

	// InboxConsumer takes webhooks that are signed as Standard Webhooks says.
	InboxConsumer = service.InboxConsumer

	// Network says how a Service is reached: TLS, proxies, pages of other origins, and how
	// much of it everybody may take.
	Network = service.Network

	// Service is a running engine with its HTTP interface and its database. It is
	// safe for concurrent use. Engine is the engine behind the interface, Pool the pool
	// of connections, for tables of the program's own, and URL the address to send
	// requests to. Wait waits until a context ends or the service fails, and Stop stops
	// in order.
	Service = service.Service
)

// Start connects to the database, migrates it, and serves. ctx bounds only the
// start. Call Stop when done.
//
// Errors: a *UsageError for an address, a network, a schema name or an inbox that cannot be;
// the mistakes of the workflows; a route that cannot be; those of package schema,
// [engine.New] and its Start.
func Start(ctx context.Context, c Config) (*Service, error) { return service.Start(ctx, c) }
