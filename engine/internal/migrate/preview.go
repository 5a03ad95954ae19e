package migrate

import (
	"context"
	"log/slog"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/kernel/clock"
	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/internal/kernel/store"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// previewed is how many instances a preview reads at once.
const previewed = 200

// Preview says what a migration by the plan would do now, and does nothing. It reads and decides every instance of the version that is
// under way, each as it is then.
func Preview(ctx context.Context, reader *store.Reader, plan *workflow.Migration, clock *clock.Clock, log *slog.Logger) (
	inspect.MigrationPreview, error,
) {
	p := inspect.MigrationPreview{Workflow: plan.To.Name, From: plan.From.Version, To: plan.To.Version, At: clock.Now()}
	look := &store.OpenLook{Workflow: p.Workflow, Definition: p.From, Limit: previewed}
	for {
		list, err := reader.OpenInstances(ctx, look)
		for i := range list {
			preview(&p, plan, &list[i], log)
		}
		if err != nil || len(list) == 0 {
			return p, err
		}
	}
}

// preview adds an instance. Why the plan's code fails is logged, once for each reason.
func preview(p *inspect.MigrationPreview, plan *workflow.Migration, i *transitions.Instance, log *slog.Logger) {
	s := stateOf(p, plan, i.State)
	s.Count++
	command := transitions.Command{Tenant: i.Tenant, Workflow: i.Workflow, Instance: i.ID, Key: "dry-run"}
	prepared, err := decide.Operate(command, transitions.Operation{Action: transitions.Migrate, To: p.To}, plan)
	if err != nil {
		s.Rejected++
		return
	}
	d := decide.Decide(prepared, plan.From, i, p.At)
	switch {
	case d.After != nil:
		s.Migrated++
		if len(d.Overdue) > 0 {
			s.Overdue++
		}
	case d.Stored || workflow.CodeOf(d.Err) != workflow.MigrationWaits:
		s.Rejected++
		told := len(p.Refusals)
		p.Refusals = inspect.Refused(p.Refusals,
			inspect.MigrationRefusal{State: i.State, Reason: workflow.AsError(d.Err).Message, Count: 1, Instance: i.ID})
		if len(p.Refusals) > told && d.Err.Cause != nil {
			log.Warn("the code of a plan fails for an instance", "workflow", i.Workflow, "instance", i.ID, "error", d.Err.Cause)
		}
	default:
		s.Waiting++
	}
}

func stateOf(p *inspect.MigrationPreview, plan *workflow.Migration, state workflow.State) *inspect.MigrationState {
	for i := range p.States {
		if p.States[i].State == state {
			return &p.States[i]
		}
	}
	into, _ := plan.Into(state)
	p.States = append(p.States, inspect.MigrationState{State: state, To: into})
	return &p.States[len(p.States)-1]
}
