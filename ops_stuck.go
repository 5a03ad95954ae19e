package pawl

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/transitions"
)

func (o *ops) stuckCommand() *cobra.Command {
	var f transitions.StuckFilter
	c := &cobra.Command{
		Use:   "stuck",
		Short: "List the commands that wait for a person",
		Long: `List the commands that wait for a person, the longest waiting first: what may
have happened outside and nobody can ask about, and what cannot be undone. See
retry, resolve and abandon.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := checkTenant(f.Tenant); err != nil {
				return err
			}
			if err := checkLimit(f.Limit); err != nil {
				return err
			}
			return o.run(c, func(ctx context.Context, e *engine.Engine) error {
				found, more, err := e.Stuck(ctx, f)
				if err != nil {
					return err
				}
				list := make([]stuckCommand, len(found))
				for i := range found {
					list[i] = stuckOf(f.Tenant, &found[i])
				}
				if o.json {
					return printJSON(c.OutOrStdout(), list)
				}
				if err := printStuck(c.OutOrStdout(), list); err != nil {
					return err
				}
				return sayMore(c, more)
			})
		},
	}
	c.Flags().StringVar(&f.Tenant, "tenant", transitions.DefaultTenant, "whose commands")
	c.Flags().StringVar(&f.Workflow, "workflow", "", "only those of this workflow")
	limitFlag(c, &f.Limit)
	return c
}

// stuckCommand is what an operator needs of one.
type stuckCommand struct {
	Scope      string             `json:"scope"`
	Key        string             `json:"key"`
	Status     transitions.Status `json:"status"`
	Workflow   string             `json:"workflow"`
	Transition string             `json:"transition"`
	Instance   uuid.UUID          `json:"instance"`
	Stuck      string             `json:"stuck"`
	Effect     string             `json:"effect"` // the key that the activity sends along
	Attempt    int                `json:"attempt"`
	Failures   int                `json:"failures"`
	Failure    string             `json:"failure,omitempty"`
	Actor      string             `json:"actor"`
	CreatedAt  time.Time          `json:"created_at"`
	UpdatedAt  time.Time          `json:"updated_at"`
}

func stuckOf(tenant string, r *transitions.Record) stuckCommand {
	return stuckCommand{Effect: r.Effect(tenant), Scope: r.Scope, Key: r.Key, Status: r.Status, Workflow: r.Workflow, Transition: r.Transition, Instance: r.Instance, Stuck: r.Stuck,
		Attempt: r.Attempt, Failures: r.Failures, Failure: r.Failure, Actor: r.Actor, CreatedAt: r.CreatedAt.UTC(), UpdatedAt: r.UpdatedAt.UTC()}
}

func printStuck(w io.Writer, list []stuckCommand) error {
	var rows [][]string
	for _, s := range list {
		rows = append(rows, []string{moment(s.UpdatedAt), s.Scope, s.Key, s.Workflow, s.Transition, s.Stuck, fmt.Sprint(s.Failures), orNone(s.Failure)})
	}
	return printTable(w, []string{"since", "scope", "key", "workflow", "transition", "why", ">failures", "failure"}, rows)
}

// limitFlag is how many entries a list may have.
func limitFlag(c *cobra.Command, limit *int) {
	c.Flags().IntVar(limit, "limit", 100, "list so many at most, 1 to 1000")
}

func checkLimit(limit int) error {
	if limit < 1 || limit > 1000 {
		return usagef("--limit %d is not 1 to 1000", limit)
	}
	return nil
}

// sayMore tells that a list was cut short.
func sayMore(c *cobra.Command, more bool) error {
	if !more {
		return nil
	}
	_, err := fmt.Fprintln(c.ErrOrStderr(), "there are more: see --limit")
	return err
}
