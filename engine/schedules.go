package engine

import (
	"context"
	"slices"

	"github.com/pawlhq/pawl/engine/internal/schedules"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/schedule"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// upcomingRuns is the number of future runs that a schedule lists.
const upcomingRuns = 10

// takeSchedules gives the workflow of schedules, if the program has it, the hook that writes their rows.
func (c *Config) takeSchedules(in func(string) string) (*schedule.Source, bool) {
	for i, source := range c.Workflows {
		if s, ok := source.(*schedule.Source); ok {
			c.Workflows = slices.Clone(c.Workflows)
			c.Workflows[i] = s.WithHook(schedules.NewHook(in, s.Calendars))
			return s, true
		}
	}
	return nil, false
}

func (e *Engine) newSchedules(s *schedule.Source) *schedules.Runner {
	return schedules.New(schedules.Config{Table: e.scheduleRows, Calendars: s.Calendars, Clock: e.clock, Log: e.config.Log,
		Submit: e.submitRuns,
		Cancel: func(ctx context.Context, ref transitions.Ref) error {
			err := e.inflight.Cancel(ctx, ref, transitions.ScheduleActor)
			if workflow.CodeOf(err) == workflow.CommandNotFound {
				return nil
			}
			return err
		}})
}

// submitRuns submits runs of schedules through the pipeline.
func (e *Engine) submitRuns(ctx context.Context, cs []transitions.Command) []transitions.Reply {
	replies := make([]transitions.Reply, len(cs))
	ticket := e.pipeline.Ticket()
	for begin := 0; begin < len(cs); begin += manyChunk {
		var chunk []*decide.Prepared
		for i := begin; i < min(begin+manyChunk, len(cs)); i++ {
			p, err := decide.AcceptRun(cs[i])
			if err == nil {
				err = e.registry.Resolve(p, newID)
			}
			if replies[i].Err = err; err == nil {
				chunk = append(chunk, p)
			}
		}
		ticket.SubmitMany(ctx, chunk)
	}
	answers := ticket.Wait(ctx)
	for i := range replies {
		if replies[i].Err == nil {
			replies[i], answers = answers[0], answers[1:]
		}
	}
	return replies
}

// Schedules lists the schedules of a tenant by name, with their next and last runs, and reports whether there are more.
//
// Errors: InvalidRequest, Unavailable.
func (r *Reader) Schedules(ctx context.Context, f inspect.ScheduleFilter) (list []inspect.Schedule, more bool, err error) {
	if err := transitions.CheckTenant(f.Tenant); err != nil {
		return nil, false, err
	}
	limit := pageSize(f.Limit)
	f.Tenant, f.Limit = tenantOr(f.Tenant), limit+1
	if list, err = r.e.scheduleRows.List(ctx, f); err != nil {
		return nil, false, err
	}
	if more = len(list) > limit; more {
		list = list[:limit]
	}
	for i := range list {
		r.e.addUpcoming(&list[i])
	}
	return list, more, nil
}

// Schedule returns a schedule with its next and last runs.
//
// Errors: NotFound, InvalidRequest, Unavailable.
func (r *Reader) Schedule(ctx context.Context, tenant, name string) (inspect.Schedule, error) {
	if err := transitions.CheckTenant(tenant); err != nil {
		return inspect.Schedule{}, err
	}
	if problem := transitions.TextProblem(name, transitions.MaxKey); problem != "" {
		return inspect.Schedule{}, workflow.Errorf(workflow.InvalidRequest, "the name %s", problem)
	}
	s, err := r.e.scheduleRows.Get(ctx, tenantOr(tenant), name)
	if err == nil {
		r.e.addUpcoming(&s)
	}
	return s, err
}

func (e *Engine) addUpcoming(s *inspect.Schedule) {
	s.Upcoming = schedules.Upcoming(s, e.calendars, upcomingRuns)
}

// ScheduleStats are the counters of this node's work on schedules. They are zero if the program has none.
func (a *Admin) ScheduleStats() schedules.Stats {
	if a.e.schedules == nil {
		return schedules.Stats{}
	}
	return a.e.schedules.Stats()
}
