package migrate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/kernel/clock"
	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/internal/kernel/store"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func planName(name string, from, to int) string { return fmt.Sprint(name, " ", from, " ", to) }

// HeldBy says which nodes hold a migration up.
func HeldBy(nodes []string, version int) string {
	return fmt.Sprintf("these nodes serve and do not know version %d: %s", version, strings.Join(nodes, ", "))
}

// tally is what has become of a page.
type tally struct {
	migrated, skipped, rejected, waiting int64
	why                                  string // the last was not taken for now
	refusals                             []inspect.MigrationRefusal
}

// take asks for the migration of the page, and counts what has become of it.
func (r *Runner) take(ctx context.Context, b *batch) error {
	t, err := r.ask(ctx, b)
	if err != nil {
		return err
	}
	counting, cancel := context.WithTimeout(context.WithoutCancel(ctx), budget)
	defer cancel()
	b.place.Taken += t.migrated + t.skipped + t.rejected
	b.place.Waiting += t.waiting
	if t.why != "" {
		b.place.Why = t.why
	}
	for _, refusal := range t.refusals {
		b.Refusals = inspect.Refused(b.Refusals, refusal)
	}
	var stopped bool
	table := r.config.Table
	err = table.pool.QueryRow(counting, table.countPage, b.ID, b.token, asJSON(b.place), t.migrated, t.skipped, t.rejected,
		asJSON(slices.Concat([]inspect.MigrationRefusal{}, b.Refusals)), r.config.Lease.Microseconds()).Scan(&stopped)
	if errors.Is(err, pgx.ErrNoRows) {
		return errLost
	}
	if err != nil {
		return err
	}
	b.page = nil
	r.migrated.Add(t.migrated)
	r.skipped.Add(t.skipped)
	r.rejected.Add(t.rejected)
	if stopped {
		return r.finish(counting, b, 0, "")
	}
	return nil
}

// ask asks for the migration of each instance of the page.
func (r *Runner) ask(ctx context.Context, b *batch) (t tally, err error) {
	plan := r.config.Plans[slices.Index(r.names, planName(b.Workflow, b.From, b.To))]
	list := make([]*decide.Prepared, len(b.page))
	for i, one := range b.page {
		c := transitions.Command{Tenant: one.Tenant, Workflow: b.Workflow, Instance: one.ID, Actor: b.Actor,
			Options: transitions.Options{Proof: b.Proof}}
		o := transitions.Operation{Action: transitions.Migrate, To: b.To, Reason: b.Reason}
		if list[i], err = decide.MigrateOne(c, o, b.ID, plan); err != nil {
			return t, fmt.Errorf("instance %s: %w", one.ID, err)
		}
	}
	replies := r.config.Submit(ctx, list)
	// An instance that cannot be decided or stored according to the plan is submitted again and refused, so that it does not block the end
	// of the batch.
	var places []int
	var unfit []*decide.Prepared
	for i := range replies {
		if workflow.CodeOf(replies[i].Err) == workflow.Internal {
			places, unfit = append(places, i), append(unfit, list[i].Unfit(replies[i].Err))
		}
	}
	if len(unfit) > 0 {
		for n, reply := range r.config.Submit(ctx, unfit) {
			replies[places[n]] = reply
		}
	}
	for i, reply := range replies {
		t.count(b.page[i], reply, plan)
	}
	return t, ctx.Err()
}

// count adds the outcome of an instance. An instance without a final outcome is read again in the next pass.
func (t *tally) count(one item, reply transitions.Reply, plan *workflow.Migration) {
	if code := workflow.CodeOf(reply.Err); code == workflow.KeyExpired {
		t.skipped++ // long ago
		return
	} else if code != "" {
		t.waiting++
		t.why = workflow.AsError(reply.Err).Message
		return
	}
	refusal := workflow.AsError(reply.Receipt.Err())
	switch {
	case !reply.Receipt.Refused() && reply.Receipt.Version > 0:
		t.migrated++
	case !reply.Receipt.Refused() || plan.From.IsFinal(refusal.State):
		t.skipped++
	default:
		t.rejected++
		t.refusals = append(t.refusals, inspect.MigrationRefusal{State: one.State, Reason: refusal.Message, Count: 1, Instance: one.ID})
	}
}

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
	at := slices.IndexFunc(p.States, func(s inspect.MigrationState) bool { return s.State == i.State })
	if at < 0 {
		into, _ := plan.Into(i.State)
		at, p.States = len(p.States), append(p.States, inspect.MigrationState{State: i.State, To: into})
	}
	s := &p.States[at]
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
