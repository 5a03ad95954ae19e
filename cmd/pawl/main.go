// Pawl with the example workflows: an order and a traffic fine. Your own service
// is as short; see package pawl.
package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/app/cli"
	"github.com/pawlhq/pawl/cmd/pawl/shop"
)

func main() { os.Exit(cli.Execute(command())) }

func command() *cobra.Command {
	root := shop.Command()
	root.AddCommand(demoCommand(), replayCommand())
	return root
}
