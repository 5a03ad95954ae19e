package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/app/cli/flags"
	"github.com/pawlhq/pawl/app/cli/output"
	"github.com/pawlhq/pawl/internal/kernel/build"
)

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

// version describes a build, and what it runs on.
type version struct {
	build.Info
	Go   string `json:"go"`
	OS   string `json:"os"`
	Arch string `json:"arch"`
}

// versionOf reads a build's description, which may be nil.
func versionOf(info *debug.BuildInfo) version {
	return version{build.Of(info), runtime.Version(), runtime.GOOS, runtime.GOARCH}
}

func (v version) String() string { return fmt.Sprintf("%s, %s %s/%s", v.Info, v.Go, v.OS, v.Arch) }
