package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/internal/cli/flags"
	"github.com/pawlhq/pawl/internal/cli/output"
)

const module = "github.com/pawlhq/pawl"

func versionCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "version",
		Short: "Say which version this is",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			info, _ := debug.ReadBuildInfo()
			v := versionOf(info)
			if asJSON {
				return output.JSON(c.OutOrStdout(), v)
			}
			_, err := fmt.Fprintln(c.OutOrStdout(), v)
			return err
		},
	}
	flags.Output(c, &asJSON)
	return c
}

// version describes a build. What is not known is "".
type version struct {
	Program        string `json:"program,omitempty"` // where it is not Pawl's own
	ProgramVersion string `json:"program_version,omitempty"`
	Pawl           string `json:"pawl"`
	Commit         string `json:"commit,omitempty"`
	Go             string `json:"go"`
	OS             string `json:"os"`
	Arch           string `json:"arch"`
}

// versionOf reads a build's description, which may be nil.
func versionOf(info *debug.BuildInfo) version {
	v := version{Pawl: "unknown", Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	if info == nil {
		return v
	}
	if info.Main.Path != module {
		v.Program, v.ProgramVersion = info.Main.Path, info.Main.Version
	}
	v.Pawl = pawlVersion(info)
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			v.Commit = s.Value
		}
	}
	return v
}

func (v version) String() string {
	text := ""
	if v.Program != "" {
		text = fmt.Sprintf("%s %s, ", v.Program, v.ProgramVersion)
	}
	text += "pawl " + v.Pawl
	if v.Commit != "" {
		text += ", commit " + v.Commit
	}
	return fmt.Sprintf("%s, %s %s/%s", text, v.Go, v.OS, v.Arch)
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
	return "unknown"
}
