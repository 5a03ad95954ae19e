package flags

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/workflow"
)

// The exit codes of all commands.
const (
	ExitOK       = 0
	ExitFailure  = 1
	ExitUsage    = 2
	ExitToDo     = 3
	ExitBroken   = 4
	ExitRefused  = 5
	ExitNoAnswer = 6
)

// exitCodes has the meaning of each exit code.
var exitCodes = []struct {
	code    int
	meaning string
}{
	{ExitOK, "success, or yes"},
	{ExitFailure, "failure, or no"},
	{ExitUsage, "invalid arguments; nothing was done"},
	{ExitToDo, "a check found warnings or pending work"},
	{ExitBroken, "a check found problems"},
	{ExitRefused, "the server refused the request, and would again"},
	{ExitNoAnswer, "no answer, or a temporary failure: retry with the same key"},
}

// ExitCodes returns a table of the exit codes.
func ExitCodes() string {
	var b strings.Builder
	for _, e := range exitCodes {
		fmt.Fprintf(&b, "  %d  %s\n", e.code, e.meaning)
	}
	return b.String()
}

// Exit is an error with an exit code of its own.
type Exit struct {
	Code int
	Err  error
}

// Error returns the text of the error.
func (e *Exit) Error() string { return e.Err.Error() }

// Unwrap returns the error.
func (e *Exit) Unwrap() error { return e.Err }

// Answered adds the exit code of an error of the API.
func Answered(ctx context.Context, err error) error {
	e, ok := errors.AsType[*workflow.Error](err)
	switch {
	case !ok || ctx.Err() != nil:
		return err
	case e.Code.Info().Retry:
		return &Exit{ExitNoAnswer, err}
	}
	return &Exit{ExitRefused, err}
}

// AnsweredByServer is like Answered, and names the environment variable that may be the reason.
func AnsweredByServer(c *cobra.Command, err error) error {
	if e, ok := errors.AsType[*workflow.Error](err); ok && c.Context().Err() == nil {
		if hint := hintOf(c, e.Code); hint != "" {
			err = fmt.Errorf("%w; %s", err, hint)
		}
	}
	return Answered(c.Context(), err)
}

func hintOf(c *cobra.Command, code workflow.Code) string {
	shown := os.Getenv(EnvToken) != ""
	switch {
	case code == workflow.Unauthorized && shown:
		return "the credential is the one in " + EnvToken
	case code == workflow.Unauthorized:
		return "set the credential in " + EnvToken
	case code == workflow.Forbidden && shown:
		return `"auth can-i GRANT" shows the grants of the credential in ` + EnvToken
	case code == workflow.TimedOut && os.Getenv(EnvURL) == "" && !c.Flag("server").Changed:
		return "the default server is used: " + EnvURL + " and --server are not set"
	}
	return ""
}
