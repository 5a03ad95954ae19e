package api

import (
	"context"
	"strings"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// mayOccupy refuses a scope or a retention period beyond the caller's grants. Keys in a scope block each other, so the default scopes of
// other commands are not permitted, and a caller that may not submit everything may choose only scopes of its own: the name of its actor, a
// colon and any text. The retention of a key is for callers that may submit everything of the workflow. Errors: ScopeInvalid, Forbidden,
// those of may.
func (a *API) mayOccupy(ctx context.Context, c *Caller, cmd *transitions.Command) error {
	if cmd.Scope != "" && !isDefaultScope(cmd) {
		name, _, _ := strings.Cut(cmd.Scope, ":")
		_, err := a.engine.Read().Workflow(name, 0)
		switch {
		case err == nil:
			return workflow.Errorf(workflow.ScopeInvalid, "scopes that begin with %q are the default scopes of other commands: leave the scope "+
				"out, or choose one that begins with no workflow's name", name+":")
		case !c.May(Submit, auth.Target{}) && !strings.HasPrefix(cmd.Scope, c.Actor+":"):
			return workflow.Errorf(workflow.Forbidden, "a scope of one's own choice takes the grant %q, or begins with the name of the actor and "+
				"a colon: %q", Submit, c.Actor+":")
		}
	}
	if cmd.Replay == 0 && cmd.Tombstone == 0 {
		return nil
	}
	whole := auth.Target{Workflow: cmd.Workflow}
	if whole.Workflow == "" && !c.May(Submit, whole) {
		inst, err := a.engine.Read().Instance(ctx, cmd.Tenant, cmd.Instance)
		if err != nil {
			return err
		}
		whole.Workflow = inst.Workflow
	}
	if !c.May(Submit, whole) {
		return workflow.Errorf(workflow.Forbidden, "to choose how long a key is kept takes the grant %q for the whole workflow", Submit)
	}
	return nil
}

// isDefaultScope reports whether a command has the scope that it would have without one.
func isDefaultScope(cmd *transitions.Command) bool {
	instance := cmd.Instance
	if instance == uuid.Nil && cmd.BusinessKey != "" {
		instance = transitions.InstanceID(cmd.Tenant, cmd.Workflow, cmd.BusinessKey)
	}
	name, rest, _ := strings.Cut(cmd.Scope, ":")
	return (cmd.Workflow == "" || name == cmd.Workflow) &&
		(instance != uuid.Nil && rest == instance.String() || cmd.Instance == uuid.Nil && rest == cmd.Transition)
}
