package ops

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/app/cli/flags"
	"github.com/pawlhq/pawl/app/cli/output"
	"github.com/pawlhq/pawl/app/usage"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// settlement returns a command that settles a stuck command.
func settlement(action transitions.Action, short string, more ...flagGroup) operation {
	return operation{
		use: string(action) + " [SCOPE KEY]", short: short,
		long: `Select the command by scope and key, or by its instance if that has only one stuck
command: with --workflow and --business-key, or with --instance.

The operation is audited with actor and reason. On a database this program commits it
itself.`,
		flags: append([]flagGroup{oneTenant("tenant of the command"), instanceFlags, authorFlags}, more...),
		operands: func(c *cobra.Command, args []string) error {
			if c.Flag("business-key").Changed || c.Flag("instance").Changed {
				return flags.Operands()(c, args)
			}
			return flags.Operands("SCOPE", "KEY")(c, args)
		},
		check:   func(s *session) error { return s.checkJSON("result") },
		commits: true,
		run: func(ctx context.Context, s *session) error {
			target, err := s.target(ctx)
			if err != nil {
				return err
			}
			body := api.Operation{Scope: target.Scope, Key: target.Key, Reason: s.text("reason"), Result: s.value("result")}
			return s.commit(ctx, flags.Request{Path: s.path("v1/ops/commands/" + string(action)), Body: body})
		},
	}
}

// checkJSON validates a flag that has JSON, if it is given.
func (s *session) checkJSON(name string) error {
	if s.text(name) == "" {
		return nil
	}
	_, err := flags.JSON("--"+name, []byte(s.text(name)))
	return err
}

// value returns the JSON of a flag, or nil if it is not given.
func (s *session) value(name string) jsontext.Value {
	if s.text(name) == "" {
		return nil
	}
	return jsontext.Value(s.text(name))
}

// commit sends a request that is a command, and prints its answer.
func (s *session) commit(ctx context.Context, r flags.Request) error {
	r.Method, r.Key = http.MethodPost, uuid.NewString()
	body, err := s.api.Call(ctx, r)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.OutOrStdout(), "%s\n", body)
	return err
}

// target returns the command that the operands name, or else the only stuck command of the instance that the flags name.
func (s *session) target(ctx context.Context) (t wire.CommandStatus, err error) {
	if len(s.args) > 0 {
		return wire.CommandStatus{Scope: s.args[0], Key: s.args[1]}, nil
	}
	page, err := call[api.CommandPage](ctx, s, flags.Request{Path: s.path("v1/ops/stuck"), Query: s.query()})
	switch {
	case err != nil:
		return t, err
	case len(page.Commands) == 0:
		return t, workflow.Errorf(workflow.CommandNotFound, "no command on this instance waits for an operator")
	case len(page.Commands) > 1:
		return t, usage.Errorf("%d commands on this instance wait for an operator: name one by SCOPE and KEY, as stuck lists them",
			len(page.Commands))
	}
	return page.Commands[0], nil
}

func checkCorrection(s *session) error {
	switch {
	case s.text("reason") == "":
		return usage.Errorf("--reason is missing")
	case s.text("state") == "" && s.text("data") == "":
		return usage.Errorf("--state or --data is missing")
	case s.text("instance") == "" && s.text("business-key") == "":
		return usage.Errorf("--instance, or --workflow and --business-key, are missing")
	}
	return s.checkJSON("data")
}

func correct(ctx context.Context, s *session) error {
	path := []string{"v1", "ops", "instances", s.text("instance"), "correct"}
	if s.text("business-key") != "" {
		path = []string{"v1", "ops", "workflows", s.text("workflow"), "keys", s.text("business-key"), "correct"}
	}
	return s.commit(ctx, flags.Request{Path: path,
		Body: api.Correction{State: workflow.State(s.text("state")), Data: s.value("data"), Reason: s.text("reason")}})
}

// tryCorrection prints the instance as a correction would leave it.
func (s *session) tryCorrection() error {
	id, err := flags.Instance(s.Command)
	if err != nil {
		return err
	}
	cmd := transitions.Command{Tenant: s.text("tenant"), Workflow: s.text("workflow"), Instance: id, BusinessKey: s.text("business-key"),
		Key: uuid.NewString(), Actor: s.text("by")}
	receipt, after, err := s.dryRun(s.Command, cmd, transitions.Operation{Action: transitions.Correct, Reason: s.text("reason"),
		State: workflow.State(s.text("state")), Data: s.value("data")})
	if err == nil {
		err = receipt.Err()
	}
	if err != nil {
		return err
	}
	result, err := receipt.Result()
	if err != nil {
		return err
	}
	return s.print(jsontext.Value(receipt.Body), func(w io.Writer) error {
		lines := [][2]string{{"state", string(after.State)}, {"data", string(after.Data)}, {"open", fmt.Sprint(after.Open)}}
		for _, t := range result.Overdue {
			lines = append(lines, [2]string{"timer",
				fmt.Sprintf("%s was due at %s, and fires at once: %s", t.Timer, output.Moment(t.Due), t.Transition)})
		}
		return output.Lines(w, 6, lines)
	})
}

// showInstance prints the whole of an instance.
func showInstance(ctx context.Context, s *session) error {
	path, err := s.instancePath(ctx)
	if err != nil {
		return err
	}
	found, err := call[api.Case](ctx, s, flags.Request{Path: path})
	if err != nil {
		return err
	}
	return s.print(&found, func(w io.Writer) error { return printCase(w, &found) })
}

// instancePath returns the path of the instance with an id or a business key. If both are possible, --workflow selects the business key.
func (s *session) instancePath(ctx context.Context) (path []string, err error) {
	key := s.args[0]
	byKey := func(name string) []string { return []string{"v1", "ops", "workflows", name, "keys", key} }
	if name := s.text("workflow"); name != "" {
		return byKey(name), nil
	}
	exists := func(path []string) (bool, error) {
		_, err := s.api.Call(ctx, flags.Request{Path: path})
		if workflow.CodeOf(err) == workflow.InstanceNotFound {
			return false, nil
		}
		return err == nil, err
	}
	if id, err := uuid.Parse(key); err == nil && id != uuid.Nil {
		path := []string{"v1", "ops", "instances", id.String()}
		if found, err := exists(path); found || err != nil {
			return path, err
		}
	}
	known, err := call[wire.WorkflowList](ctx, s, flags.Request{Path: []string{"v1", "workflows"}})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, w := range known.Workflows {
		found, err := exists([]string{"v1", "workflows", w.Name, "keys", key})
		switch {
		case err != nil:
			return nil, err
		case found:
			names = append(names, w.Name)
		}
	}
	switch len(names) {
	case 0:
		return nil, workflow.Errorf(workflow.InstanceNotFound, "no instance has this id or business key")
	case 1:
		return byKey(names[0]), nil
	}
	return nil, usage.Errorf("instances of %s have this business key: select one with --workflow", strings.Join(names, ", "))
}
