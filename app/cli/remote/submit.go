package remote

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/app/cli/flags"
	"github.com/pawlhq/pawl/app/cli/output"
	"github.com/pawlhq/pawl/app/usage"
	"github.com/pawlhq/pawl/client"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// submitting is what the flags of submit say.
type submitting struct {
	asking
	command               client.Command
	notBefore, happenedAt string
	wait                  bool
}

func submitCommand(a asking) *cobra.Command {
	s := submitting{asking: a}
	s.submits = true
	c := &cobra.Command{
		Use:   "submit WORKFLOW|INSTANCE TRANSITION [PAYLOAD]",
		Short: "Submit a command: create an instance, or take one on",
		Long: `Submit a command: create an instance of a workflow, or take an instance on.

` + instanceUsage + `
PAYLOAD is JSON, @FILE for what is in a file, or - for the standard input; {} without it.

A command is done once, however often it is sent with its key. Without --key one is made
for this call, and told where there is no answer. What takes time is accepted first, and
told with its scope and key, for watch; --wait waits for its end.

On a database (--database) this program decides the command itself, with the workflows
that it was built with; what takes time is left to the nodes that serve.`,
		Example: `  pawl submit order place '{"customer":"c-1","cart":"k-9","total":4900,"currency":"EUR"}'
  pawl submit order#c-1:k-9 pay '{"method":"card"}' --key payment-17 --wait`,
		Args: flags.Operands("WORKFLOW or INSTANCE", "TRANSITION", "[PAYLOAD]"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := s.read(c, args); err != nil {
				return err
			}
			return s.ask(c, attempts, func(ctx context.Context, asked *client.Client) error { return s.submit(ctx, c, asked) })
		},
	}
	s.flags(c)
	own := c.Flags()
	own.StringVar(&s.command.Key, "key", "", "the idempotency key")
	own.StringVar(&s.command.Scope, "scope", "", "within what the key is unique; without it, the transition of the instance")
	own.StringVar(&s.command.Reason, "reason", "", "why, for the audit row and the events")
	own.Int64Var(&s.command.IfVersion, "if-version", 0, "refuse it unless the instance has this version")
	own.StringVar(&s.notBefore, "not-before", "", "decide it then, such as 2030-01-31T12:00:00Z")
	own.StringVar(&s.happenedAt, "happened-at", "", "it is an import, of what happened then, such as 2020-01-31T12:00:00Z")
	own.BoolVar(&s.wait, "wait", false, "wait for the end of what takes time")
	flags.Before(c, func() error {
		if s.command.IfVersion < 0 {
			return usage.Errorf("--if-version %d is not a version from 1 on", s.command.IfVersion)
		}
		return flags.NotEmpty(c, "key", "scope", "reason", "not-before", "happened-at")
	})
	return c
}

// read makes the command of what the call says.
func (s *submitting) read(c *cobra.Command, args []string) (err error) {
	if s.command.On, err = s.instance(args[0]); err != nil {
		if strings.Contains(args[0], "#") {
			return err
		}
		s.workflow, s.command.Workflow = args[0], args[0] // which creates one
	}
	s.command.Transition = args[1]
	if len(args) > 2 {
		if s.command.Payload, err = payloadOf(c, args[2]); err != nil {
			return err
		}
	}
	if s.notBefore != "" {
		if s.command.NotBefore, err = time.Parse(time.RFC3339, s.notBefore); err != nil {
			return usage.Errorf("--not-before %s is not a time such as 2030-01-31T12:00:00Z", s.notBefore)
		}
	}
	if s.happenedAt != "" {
		if s.command.HappenedAt, err = time.Parse(time.RFC3339, s.happenedAt); err != nil || s.command.HappenedAt.IsZero() {
			return usage.Errorf("--happened-at %s is not a time such as 2020-01-31T12:00:00Z", s.happenedAt)
		}
	}
	if s.command.Key == "" {
		s.command.Key = client.NewKey()
	}
	return nil
}

func payloadOf(c *cobra.Command, text string) (jsontext.Value, error) {
	body := []byte(text)
	if text == "-" {
		var err error
		if body, err = io.ReadAll(c.InOrStdin()); err != nil {
			return nil, fmt.Errorf("read the payload: %w", err)
		}
	} else if path, is := strings.CutPrefix(text, "@"); is {
		var err error
		if body, err = os.ReadFile(path); err != nil {
			return nil, usage.Errorf("read the payload: %w", err)
		}
	}
	return flags.JSON("PAYLOAD", body)
}

func (s *submitting) submit(ctx context.Context, c *cobra.Command, asked *client.Client) error {
	do := asked.Submit
	if s.wait {
		do = asked.SubmitAndWait
	}
	r, err := do(ctx, s.command)
	if r.Status != 0 && (err == nil || s.json && jsontext.Value(r.Body).IsValid()) { // a proxy may answer with something else
		answer := any(jsontext.Value(r.Body))
		if r.InFlight() {
			answer = r.Command
		}
		if problem := s.show(c, answer, func(w io.Writer) error { return printReceipt(w, &r) }); problem != nil {
			return problem
		}
	}
	if err != nil && (r.Status == 0 || workflow.CodeOf(err).Info().Retry) {
		c.PrintErrf("the key is %s: with it, the same command can be sent again\n", s.command.Key)
	}
	return err
}

func printReceipt(w io.Writer, r *client.Receipt) error {
	if r.InFlight() {
		return output.Lines(w, 12, [][2]string{{"instance", idOf(r.Instance)}, {"in flight", string(r.Command.Status)},
			{"scope", r.Command.Scope}, {"key", r.Key}})
	}
	result, err := r.Result()
	if err != nil {
		return err
	}
	return printResult(w, r, &result)
}

func printResult(w io.Writer, r *client.Receipt, result *transitions.Result) error {
	lines := [][2]string{{"instance", result.Instance.String()}, {"state", fmt.Sprintf("%s, version %d", result.State, result.Version)},
		{"position", fmt.Sprint(result.Position)}, {"key", r.Key}}
	if result.Existing {
		lines[2] = [2]string{"existing", "it was there before: nothing was done"}
	}
	if r.Replayed {
		lines = append(lines, [2]string{"replayed", "it was done before"})
	}
	return output.Lines(w, 12, lines)
}
