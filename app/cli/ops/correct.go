package ops

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/app/cli/flags"
	"github.com/pawlhq/pawl/app/cli/output"
	"github.com/pawlhq/pawl/app/usage"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func (o *ops) correctCommand() *cobra.Command {
	var a author
	var f inspect.StuckFilter
	var state, data string
	var dryRun bool
	c := &cobra.Command{
		Use:   "correct",
		Short: "Put an instance into another state, or correct its data",
		Long: `Put an instance into another state, or correct its data: the one with --instance,
or with --workflow and --business-key. It is a transition, pawl.corrected, with
who does it and why, and what the definition says of states, timers, attributes
and the form of the data holds for it. Guards and roles are not asked. An instance that
has ended stays so.

--data has the members that change, as an object in JSON; null is the zero value.
This program takes part as a node for the moment, which commits it and works on
nothing; with --dry-run it writes nothing, and shows the instance as it would be.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			op := transitions.Operation{Action: transitions.Correct, Reason: a.reason, State: workflow.State(state)}
			if data != "" {
				valid, err := flags.JSON("--data", []byte(data))
				if err != nil {
					return err
				}
				op.Data = valid
			}
			switch {
			case a.reason == "":
				return usage.Errorf("say --reason, for the record")
			case state == "" && data == "":
				return usage.Errorf("say --state or --data, or both")
			case f.Instance == uuid.Nil && f.BusinessKey == "":
				return usage.Errorf("say --instance, or --workflow and --business-key")
			}
			cmd := transitions.Command{Tenant: f.Tenant, Instance: f.Instance, Key: uuid.NewString(), Actor: a.by}
			return o.run(c, func(ctx context.Context, e *engine.Engine) error {
				if f.BusinessKey != "" {
					inst, err := e.Read().InstanceByKey(ctx, f.Tenant, f.Workflow, f.BusinessKey)
					if err != nil {
						return err
					}
					cmd.Instance = inst.ID
				}
				if dryRun {
					return o.tryCorrection(ctx, c, e, cmd, op)
				}
				return settle(ctx, e, cmd, op, c.OutOrStdout())
			})
		},
	}
	flags.Tenant(c, &f.Tenant, transitions.DefaultTenant, "whose instance")
	caseFlags(c, &f.Workflow, &f.BusinessKey, &f.Instance, "correct")
	c.Flags().StringVar(&state, "state", "", "the state in which it goes on")
	c.Flags().StringVar(&data, "data", "", "the members of the data that change, as JSON")
	c.Flags().BoolVar(&dryRun, "dry-run", false, "write nothing, and show the instance as it would be")
	a.flags(c)
	return c
}

func (o *ops) tryCorrection(ctx context.Context, c *cobra.Command, e *engine.Engine, cmd transitions.Command,
	op transitions.Operation) error {
	receipt, after, err := e.Admin().DryRunOperation(ctx, cmd, op)
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
	if o.json {
		return output.JSON(c.OutOrStdout(), json.RawMessage(receipt.Body))
	}
	lines := [][2]string{{"state", string(after.State)}, {"data", string(after.Data)}, {"open", fmt.Sprint(after.Open)}}
	for _, t := range result.Overdue {
		lines = append(lines, [2]string{"timer",
			fmt.Sprintf("%s was due at %s, and fires at once: %s", t.Timer, output.Moment(t.Due), t.Transition)})
	}
	return output.Lines(c.OutOrStdout(), 6, lines)
}
