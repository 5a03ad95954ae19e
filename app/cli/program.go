package cli

import (
	"context"
	"flag"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/app/cli/flags"
	"github.com/pawlhq/pawl/app/service"
	"github.com/pawlhq/pawl/workflow"
)

// Program is a command line with commands of its own.
type Program struct {
	Workflows []workflow.Source
	Commands  []Subcommand
	Args      []string // without the name of the program; nil means those of the process
}

// Subcommand is a command of a program's own.
type Subcommand struct {
	Usage string        // the name and the operands, such as "import FILE"; an optional operand is in brackets
	Short string        // one line for the help
	Flags *flag.FlagSet // may be nil
	Run   func(context.Context, Call) error
}

// Call is one call of a Subcommand.
type Call struct {
	Args     []string       // the operands
	Config   service.Config // of the flags --database and --schema, and the program's workflows
	Out, Err io.Writer
}

// Run executes the command that the arguments name, prints an error to standard error, and returns the exit code.
func (p Program) Run() int {
	root := CommandLine(p.Workflows...)
	for _, s := range p.Commands {
		c := &cobra.Command{Use: s.Usage, Short: s.Short, Args: flags.Operands(strings.Fields(s.Usage)[1:]...)}
		if s.Flags != nil {
			c.Flags().AddGoFlagSet(s.Flags)
		}
		c.RunE = func(c *cobra.Command, args []string) error {
			return s.Run(c.Context(), Call{Args: args, Config: ConfigOf(c, p.Workflows...), Out: c.OutOrStdout(), Err: c.ErrOrStderr()})
		}
		root.AddCommand(c)
	}
	if p.Args != nil {
		root.SetArgs(p.Args)
	}
	return Execute(root)
}
