package cli

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/app/cli/flags"
	"github.com/pawlhq/pawl/app/cli/output"
	"github.com/pawlhq/pawl/app/usage"
	"github.com/pawlhq/pawl/workflow"
	"github.com/pawlhq/pawl/workflow/diagram"
)

func diagramCommand(workflows []workflow.Source) *cobra.Command {
	var format string
	var asJSON bool
	c := &cobra.Command{
		Use:   "diagram WORKFLOW",
		Short: "Draw a workflow",
		Args:  flags.Operands("WORKFLOW"),
		RunE: func(c *cobra.Command, args []string) error {
			w, err := newest(workflows, args[0])
			if err != nil {
				return err
			}
			drawing, err := draw(w, format)
			if err != nil {
				return err
			}
			if asJSON {
				return output.JSON(c.OutOrStdout(), &drawn{w.Name, w.Version, format, string(drawing)})
			}
			_, err = c.OutOrStdout().Write(drawing)
			return err
		},
	}
	flags.Output(c, &asJSON)
	c.Flags().StringVar(&format, "format", "mermaid", "mermaid, dot or svg")
	return c
}

// drawn is a diagram as JSON.
type drawn struct {
	Workflow string `json:"workflow"`
	Version  int    `json:"version"`
	Format   string `json:"format"`
	Diagram  string `json:"diagram"`
}

func draw(w *workflow.Workflow, format string) ([]byte, error) {
	switch format {
	case "mermaid":
		return []byte(diagram.Mermaid(w, diagram.Options{})), nil
	case "dot":
		return []byte(diagram.DOT(w, diagram.Options{})), nil
	case "svg":
		return diagram.SVG(w, diagram.Options{})
	default:
		return nil, usage.Errorf("--format %s is not mermaid, dot or svg", format)
	}
}

// newest finds the newest version of a workflow by name.
func newest(sources []workflow.Source, name string) (*workflow.Workflow, error) {
	var found *workflow.Workflow
	var names []string
	for _, s := range sources {
		w, err := s.Build()
		if err != nil {
			return nil, err
		}
		if w.Name == name && (found == nil || w.Version > found.Version) {
			found = w
		}
		names = append(names, w.Name)
	}
	if found == nil {
		return nil, usage.Errorf("unknown workflow %q; %s", name, flags.Nearest(name, slices.Compact(slices.Sorted(slices.Values(names)))))
	}
	return found, nil
}
