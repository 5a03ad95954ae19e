package schedule

import (
	"errors"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/workflow"
)

// Name is the name of the workflow of schedules.
const Name = "schedule"

// Role is the role that changes schedules. Runs have every role, like timers, so it permits everything that a command can do.
const Role = "scheduler"

// States of a schedule.
const (
	Active  workflow.State = "active"
	Paused  workflow.State = "paused"
	Deleted workflow.State = "deleted"
)

// Transitions of a schedule.
const (
	Create   = "create"
	Change   = "change"
	Pause    = "pause"
	Resume   = "resume"
	Trigger  = "trigger"
	Backfill = "backfill"
	Delete   = "delete"
	Restore  = "restore"
)

// Run is the command that a schedule submits, in the name of the actor "pawl:schedule".
type Run struct {
	Workflow   string `json:"workflow" validate:"required,max=255"`
	Transition string `json:"transition" validate:"required,max=255"`

	// BusinessKey identifies the instance that the transition changes. Empty means that the transition creates an instance.
	BusinessKey string `json:"business_key,omitzero" validate:"max=255"`

	// Payload is the payload, a JSON object. In it {nominal} is replaced by the nominal time in UTC, and {date} by its date in the zone of
	// the schedule. So it is in BusinessKey.
	Payload jsontext.Value `json:"payload,omitzero"`
}

// Plan is what a schedule does, and when: the payload of "change".
type Plan struct {
	Spec   Spec   `json:"spec"`
	Policy Policy `json:"policy,omitzero"`
	Run    Run    `json:"run"`
}

// NewSchedule is the payload of "create".
type NewSchedule struct {
	Name string `json:"name" validate:"required,max=200"`
	Plan
}

// Span is the payload of "backfill": From is included, Until is not.
type Span struct {
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
}

// Schedule is the data of an instance.
type Schedule struct {
	Name string `json:"name"`
	Plan

	// Earlier are the specs that were valid before, oldest first, at most 100.
	Earlier []Era `json:"earlier,omitempty"`
	// Since is the time from which Spec is valid.
	Since time.Time `json:"since,omitzero"`
	// Filled is the newest backfill.
	Filled *Span `json:"filled,omitzero"`
}

// Era is a spec that was valid until a time.
type Era struct {
	Spec  Spec      `json:"spec"`
	Until time.Time `json:"until"`
}

const maxEras = 100

// MaxBackfill is the maximum number of runs of one backfill.
const MaxBackfill = 1000

// maxPayload is the maximum size of Run.Payload in bytes.
const maxPayload = 64 << 10

// Source is the workflow of schedules.
type Source struct {
	Calendars Calendars
	hook      workflow.Hook
}

// New returns the workflow of schedules for a program with these calendars of working days.
func New(c Calendars) *Source { return &Source{Calendars: c} }

// WithHook returns the workflow with a hook for each transition. The engine uses it.
func (s *Source) WithHook(h workflow.Hook) *Source { return &Source{s.Calendars, h} }

// Build implements [workflow.Source].
func (s *Source) Build() (*workflow.Workflow, error) {
	return workflow.Define(Name, 1,
		hooked(s, workflow.Start(Create, Active, s.create).BusinessKey(func(n NewSchedule) string { return n.Name }).RefuseExisting()).
			Doc("create a schedule"),
		hooked(s, workflow.On(Change, workflow.From(Active, Paused), Active, s.change).Or(Paused)).
			Doc("replace what the schedule does, and when"),
		hooked(s, workflow.On(Pause, workflow.From(Active), Paused, none)).Doc("submit no more runs"),
		hooked(s, workflow.On(Resume, workflow.From(Paused), Active, none)).Doc("submit the runs from now on"),
		hooked(s, workflow.On(Trigger, workflow.From(Active, Paused), Active, s.trigger).Or(Paused)).Doc("submit a run now"),
		hooked(s, workflow.On(Backfill, workflow.From(Active, Paused), Active, s.backfill).Or(Paused)).
			Doc("submit the runs of a past time that have not been submitted, by the spec that was valid then"),
		hooked(s, workflow.On(Delete, workflow.From(Active, Paused), Deleted, none)).Doc("submit no more runs, and leave the lists"),
		hooked(s, workflow.On(Restore, workflow.From(Deleted), Active, s.change)).Doc("bring a deleted schedule back, with another plan"),
	).Roles(Role).
		Attr("workflow", func(d Schedule) string { return d.Run.Workflow }).
		Build()
}

func hooked[P any](s *Source, t *workflow.Transition[Schedule, P]) *workflow.Transition[Schedule, P] {
	if s.hook != nil {
		t.Hook(s.hook)
	}
	return t.Role(Role)
}

func none(*workflow.Call, *Schedule, workflow.None) error { return nil }

func (s *Source) create(c *workflow.Call, d *Schedule, n NewSchedule) error {
	if err := s.check(n.Plan); err != nil {
		return err
	}
	*d = Schedule{Name: n.Name, Plan: n.Plan, Since: c.Now()}
	return nil
}

func (s *Source) change(c *workflow.Call, d *Schedule, p Plan) error {
	if err := s.check(p); err != nil {
		return err
	}
	if c.State() != Deleted {
		c.Goto(c.State())
	}
	if !p.Spec.Equal(d.Spec) {
		d.Earlier, d.Since = d.eras(c.Now()), c.Now()
	}
	d.Plan = p
	return nil
}

// Equal reports whether two specs say the same.
func (s Spec) Equal(other Spec) bool {
	a, b := Working{}, Working{}
	if s.Working != nil {
		a = *s.Working
	}
	if other.Working != nil {
		b = *other.Working
	}
	same := a == b && (s.Working == nil) == (other.Working == nil) && s.From.Equal(other.From) && s.Until.Equal(other.Until)
	s.Working, s.From, s.Until, other.Working, other.From, other.Until = nil, time.Time{}, time.Time{}, nil, time.Time{}, time.Time{}
	return same && s == other
}

// eras returns the earlier specs once another begins.
func (d *Schedule) eras(now time.Time) []Era {
	list := append(d.Earlier, Era{d.Spec, now})
	return list[max(0, len(list)-maxEras):]
}

func (s *Source) check(p Plan) error {
	_, err := p.Spec.Times(s.Calendars)
	if err == nil {
		err = p.Policy.check()
	}
	if err == nil {
		err = p.Run.check()
	}
	if err != nil {
		return workflow.Refuse("%s", err)
	}
	return nil
}

func (r Run) check() error {
	if p := r.Payload; len(p) > maxPayload || p != nil && p.Kind() != '{' {
		return errors.New("the payload is a JSON object of at most 64 KiB")
	}
	if r.Workflow == Name {
		return errors.New("a schedule cannot change schedules")
	}
	return nil
}

func (s *Source) trigger(c *workflow.Call, _ *Schedule, _ workflow.None) error {
	c.Goto(c.State())
	return nil
}

func (s *Source) backfill(c *workflow.Call, d *Schedule, span Span) error {
	if !span.From.Before(span.Until) || span.Until.After(c.Now()) {
		return workflow.Refuse("a backfill needs a from before its until, and an until that is not in the future")
	}
	list, err := d.Between(s.Calendars, span)
	switch {
	case err != nil:
		return workflow.Refuse("%s", err)
	case len(list) == 0:
		return workflow.Refuse("the schedule has no run in that time")
	case len(list) > MaxBackfill:
		return workflow.Refuse("the schedule has more than %d runs in that time; backfill it in parts", MaxBackfill)
	}
	c.Goto(c.State())
	d.Filled = &span
	return nil
}

// Between returns the nominal times of a span, each by the spec that was valid then, and at most one more than MaxBackfill. The first spec
// is also valid for the time before it.
func (d *Schedule) Between(calendars Calendars, span Span) (list []time.Time, err error) {
	eras := append(append([]Era{}, d.Earlier...), Era{d.Spec, span.Until})
	from := span.From
	for _, era := range eras {
		end := earlier(era.Until, span.Until)
		if !from.Before(end) {
			continue
		}
		t, err := era.Spec.Times(calendars)
		if err != nil {
			return nil, err
		}
		for next := t.Next(from.Add(-1)); !next.IsZero() && next.Before(end) && len(list) <= MaxBackfill; next = t.Next(next) {
			list = append(list, next)
		}
		from = end
	}
	return list, nil
}

// At returns the run with the nominal time in place of the placeholders.
func (r Run) At(nominal time.Time, zoneName string) Run {
	local := nominal.UTC()
	if loc, err := zone(zoneName); err == nil {
		local = nominal.In(loc)
	}
	replace := strings.NewReplacer("{nominal}", Key(nominal), "{date}", local.Format(time.DateOnly))
	r.BusinessKey = replace.Replace(r.BusinessKey)
	if r.Payload != nil {
		r.Payload = jsontext.Value(replace.Replace(string(r.Payload)))
	}
	return r
}

// Key returns the text of a nominal time in UTC. It is the idempotency key of the run.
func Key(nominal time.Time) string { return nominal.UTC().Format(time.RFC3339Nano) }
