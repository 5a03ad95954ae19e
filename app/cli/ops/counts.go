package ops

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/app/cli/flags"
	"github.com/pawlhq/pawl/app/cli/output"
	"github.com/pawlhq/pawl/app/usage"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/workflow"
)

func (o *ops) countsCommand() *cobra.Command {
	var f inspect.CountFilter
	var states []string
	var open bool
	c := &cobra.Command{
		Use:   "counts",
		Short: "Count instances by workflow, version and state",
		Long: `Count instances by workflow, version and state. Up to 10,000 of a kind are
counted; what is more is what PostgreSQL expects by its statistics, and marked
with "~".`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			for _, s := range states {
				f.States = append(f.States, workflow.State(s))
			}
			if c.Flags().Changed("open") {
				f.Open = &open
			}
			return o.run(c, func(ctx context.Context, e *engine.Engine) error {
				counts, err := e.Read().Counts(ctx, f)
				if err != nil {
					return err
				}
				return o.print(c, counts, func(w io.Writer) error { return printCounts(w, &counts) })
			})
		},
	}
	flags.Tenant(c, &f.Tenant, "", "whose instances; default is everybody's")
	c.Flags().StringVar(&f.Workflow, "workflow", "", "only those of this workflow")
	c.Flags().IntVar(&f.Definition, "definition", 0, "only those that are on this version")
	c.Flags().StringArrayVar(&states, "state", nil, "only those in this state; may be given several times")
	c.Flags().BoolVar(&open, "open", false, "only those that are in no final state, or with --open=false those that are")
	c.Flags().StringToStringVar(&f.Attributes, "attr", nil, "only those with this attribute, as NAME=VALUE; may be given several times")
	flags.Before(c, func() error {
		if err := flags.NotEmpty(c, "workflow"); err != nil {
			return err
		}
		if c.Flags().Changed("definition") && f.Definition < 1 {
			return usage.Errorf("--definition %d is not a version from 1 on", f.Definition)
		}
		return nil
	})
	return c
}

func printCounts(w io.Writer, c *inspect.Counts) error {
	total := inspect.InstanceCount{Workflow: "all", Count: c.Total, Exact: c.Exact}
	header := []string{"workflow", ">version", "state", "open", ">count"}
	return output.Table(w, header, append(c.Counts, total), func(k *inspect.InstanceCount) []string {
		if k.Definition == 0 {
			return []string{k.Workflow, "", "", "", output.Count(k.Count, !k.Exact)}
		}
		return []string{k.Workflow, fmt.Sprint(k.Definition), string(k.State), fmt.Sprint(k.Open), output.Count(k.Count, !k.Exact)}
	})
}
