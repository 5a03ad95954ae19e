package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

const module = "github.com/pawlhq/pawl"

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Say which version this is",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			info, _ := debug.ReadBuildInfo()
			_, err := fmt.Fprintf(c.OutOrStdout(), "%s\n", version(info))
			return err
		},
	}
}

// version describes a build: the program where it is not Pawl's own, Pawl, the
// commit where it is known, and Go. info may be nil.
func version(info *debug.BuildInfo) string {
	built := fmt.Sprintf("%s %s/%s", runtime.Version(), runtime.GOOS, runtime.GOARCH)
	if info == nil {
		return "pawl, unknown version, " + built
	}
	text := ""
	if info.Main.Path != module {
		text = fmt.Sprintf("%s %s, ", info.Main.Path, info.Main.Version)
	}
	text += "pawl " + pawlVersion(info)
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			text += ", commit " + s.Value
		}
	}
	return text + ", " + built
}

func pawlVersion(info *debug.BuildInfo) string {
	if info.Main.Path == module {
		return info.Main.Version
	}
	for _, d := range info.Deps {
		if d.Path == module {
			if d.Replace != nil {
				d = d.Replace
			}
			return d.Version
		}
	}
	return "(unknown)"
}
