package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/examples/order"
	"github.com/pawlhq/pawl/examples/order/provider"
	"github.com/pawlhq/pawl/internal/testkit/docs"
)

// The help of all commands is what scripts and operators depend on: names, arguments, flags and defaults.
func TestHelp_Golden(t *testing.T) {
	for _, name := range []string{"DATABASE_URL", "PAWL_URL", "PAWL_API_KEY", "PAWL_HOME"} {
		t.Setenv(name, "")
	}
	var all strings.Builder
	var show func(c *cobra.Command)
	show = func(c *cobra.Command) {
		if c.Hidden {
			return
		}
		var help bytes.Buffer
		c.SetOut(&help)
		require.NoError(t, c.Help())
		fmt.Fprintf(&all, "## %s\n%s\n", c.CommandPath(), help.String())
		for _, below := range c.Commands() {
			show(below)
		}
	}
	root := CommandLine(order.Workflow(provider.New()))
	root.Use = "pawl"
	show(root)
	docs.File(t, "testdata/help.txt", all.String())
}
