package cli

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/app/cli/flags"
	"github.com/pawlhq/pawl/app/cli/output"
	"github.com/pawlhq/pawl/app/usage"
	"github.com/pawlhq/pawl/internal/kernel/build"
	"github.com/pawlhq/pawl/workflow"
	"github.com/pawlhq/pawl/workflow/diagram"
)

func diagramCommand(workflows []workflow.Source) *cobra.Command {
	var format string
	var asJSON bool
	c := &cobra.Command{
		Use:   "diagram WORKFLOW",
		Short: "Print the diagram of a workflow",
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
			return output.Print(c, asJSON, &drawn{w.Name, w.Version, format, string(drawing)}, func(w io.Writer) error {
				_, err := w.Write(drawing)
				return err
			})
		},
	}
	flags.Output(c, &asJSON)
	c.Flags().StringVar(&format, "format", "mermaid", "diagram format: mermaid, dot or svg")
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

func versionCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			info, _ := debug.ReadBuildInfo()
			v := versionOf(info)
			return output.Print(c, asJSON, v, func(w io.Writer) error {
				_, err := fmt.Fprintln(w, v)
				return err
			})
		},
	}
	flags.Output(c, &asJSON)
	return c
}

// version describes a build and its platform.
type version struct {
	build.Info
	Go   string `json:"go"`
	OS   string `json:"os"`
	Arch string `json:"arch"`
}

// versionOf describes a build; info may be nil.
func versionOf(info *debug.BuildInfo) version {
	return version{build.Of(info), runtime.Version(), runtime.GOOS, runtime.GOARCH}
}

func (v version) String() string { return fmt.Sprintf("%s, %s %s/%s", v.Info, v.Go, v.OS, v.Arch) }
