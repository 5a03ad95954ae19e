package cli

import (
	"encoding/json"
	"io"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/internal/usage"
)

// Exit codes of commands that look and tell.
const (
	exitWarnings = 3 // something is to be done, and nothing is broken
	exitProblems = 4
)

// verdict is the exit code of a command that has said all on its output.
type verdict int

func (v verdict) Error() string { return "what was found is on the output" }

// outputOf adds the flag --output to a command, which is then whether JSON is asked for.
func outputOf(c *cobra.Command) func() (asJSON bool, err error) {
	form := c.Flags().StringP("output", "o", "table", "table or json")
	return func() (bool, error) {
		if *form != "table" && *form != "json" {
			return false, usage.Errorf("--output %s is not table or json", *form)
		}
		return *form == "json", nil
	}
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
