// Package pawl is the front door: it turns workflow definitions into a whole
// service with its command line.
//
//	func main() { pawl.Main(order.Workflow(payments)) }
//
// The program then knows the commands serve, ops, migrate, verify, diagram and
// version. With no DATABASE_URL it runs a private PostgreSQL of its own.
//
// A program that needs more than that composes the same parts itself: [Command]
// to add commands, [Start] to run the service from its own main, or package
// engine for the engine alone.
package pawl

import (
	"os"

	"github.com/pawlhq/pawl/workflow"
)

// Main runs the command line over the given workflows and ends the process: 0
// when all went well, 1 for a failure, 2 for a mistake in how it was called.
func Main(workflows ...workflow.Source) {
	os.Exit(Execute(Command(workflows...)))
}
