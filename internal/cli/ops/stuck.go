package ops

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/cli/flags"
	"github.com/pawlhq/pawl/transitions"
)

func (o *ops) stuckCommand() *cobra.Command {
	var f inspect.StuckFilter
	c := &cobra.Command{
		Use:   "stuck",
		Short: "List the commands that wait for an operator",
		Long: `List the commands that wait for an operator, the longest waiting first: what may
have happened outside and nobody can ask about, and what cannot be undone. See
retry, resolve and abandon.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			header := []string{"since", "workflow", "business key", "transition", "scope", "key", "why", ">failures", "failure"}
			return list(o, c, header, func(ctx context.Context, e *engine.Engine) (stuck []stuckCommand, more bool, err error) {
				found, more, err := e.Stuck(ctx, f)
				for i := range found {
					stuck = append(stuck, stuckOf(f.Tenant, &found[i]))
				}
				return stuck, more, err
			}, func(s *stuckCommand) []string {
				return []string{moment(s.UpdatedAt), s.Workflow, orNone(s.BusinessKey), orUndo(s.Transition, s.Undo), s.Scope, s.Key, s.Stuck,
					fmt.Sprint(s.Failures), orNone(s.Failure)}
			})
		},
	}
	flags.Tenant(c, &f.Tenant, transitions.DefaultTenant, "whose commands")
	caseFlags(c, &f.Workflow, &f.BusinessKey, &f.Instance, "only those of")
	limitFlag(c, &f.Limit)
	return c
}

// stuckCommand is what an operator needs of one.
type stuckCommand struct {
	Scope       string             `json:"scope"`
	Key         string             `json:"key"`
	Status      transitions.Status `json:"status"`
	Workflow    string             `json:"workflow"`
	BusinessKey string             `json:"business_key,omitempty"` // of the instance
	Transition  string             `json:"transition"`
	Undo        bool               `json:"undo,omitempty"` // it is the undo of the transition's effect
	Instance    uuid.UUID          `json:"instance"`
	Stuck       string             `json:"stuck"`
	Effect      string             `json:"effect"` // the key that the activity sends along
	Attempt     int                `json:"attempt"`
	Failures    int                `json:"failures"`
	Failure     string             `json:"failure,omitempty"`
	Actor       string             `json:"actor"`
	CreatedAt   time.Time          `json:"created_at"`
	UpdatedAt   time.Time          `json:"updated_at"`
}

func stuckOf(tenant string, r *transitions.Record) stuckCommand {
	return stuckCommand{Effect: r.Effect(tenant), Scope: r.Scope, Key: r.Key, Status: r.Status, Workflow: r.Workflow,
		BusinessKey: r.BusinessKey, Transition: r.Transition, Undo: r.Phase == transitions.Undoing, Instance: r.Instance, Stuck: r.Stuck,
		Attempt: r.Attempt, Failures: r.Failures, Failure: r.Failure, Actor: r.Actor, CreatedAt: r.CreatedAt.UTC(), UpdatedAt: r.UpdatedAt.UTC()}
}

// orUndo is a transition as a table shows it, or its undo.
func orUndo(transition string, undo bool) string {
	if undo {
		return "undo of " + transition
	}
	return transition
}
