package pawltest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/internal/kernel/definitions"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// TB is what a run needs of the test that it is for; every [testing.TB] has it.
type TB interface {
	Helper()
	Logf(format string, args ...any)
	Fatalf(format string, args ...any)
	Context() context.Context
}

// Example stands for the test in a testable example, which has none: what would fail the test panics.
var Example TB = alone{}

type alone struct{}

// mistake is what Example panics with: no panic of an activity.
type mistake string

func (alone) Helper()                           {}
func (alone) Logf(string, ...any)               {}
func (alone) Fatalf(format string, args ...any) { panic(mistake(fmt.Sprintf(format, args...))) }
func (alone) Context() context.Context          { return context.Background() }

// Begin is the time at which every run begins.
var Begin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Sim is an in-memory run of workflows, with a clock that moves only when it is
// told to. It is for one goroutine; an activity may use it too.
type Sim struct {
	t         TB
	now       time.Time
	workflows *definitions.Set
	instances map[address]*transitions.Instance
	commands  map[transitions.Ref]*command
	flying    map[transitions.Ref]*command // those that are in flight
	history   map[address][]transitions.Entry
	events    []transitions.Event
	dead      map[transitions.MessageRef]*deadMessage
	heads     map[string]int64 // the position of each tenant's newest transition
	numbers   int              // given to commands, in order
	ids, keys int              // made so far
	fakes     map[activity]fake
	lose      int // workers that are lost at the end of their next attempt
}

// address names an instance.
type address struct {
	tenant string
	id     uuid.UUID
}

// command is what is known of a key.
type command struct {
	transitions.Record
	tenant string
	number int                     // in the order of arrival
	unsure bool                    // nobody knows what some attempt has done
	none   bool                    // all that have failed have done nothing
	stop   context.CancelCauseFunc // ends the attempt that is under way
}

// Run begins a run of the workflows, of which several versions may be given. It fails the test with every mistake of their definitions.
func Run(t TB, sources ...workflow.Source) *Sim {
	t.Helper()
	workflows, err := definitions.Build(sources, replay)
	if err != nil {
		t.Fatalf("pawltest: %v", err)
	}
	return &Sim{t: t, now: Begin, workflows: workflows, instances: map[address]*transitions.Instance{},
		commands: map[transitions.Ref]*command{}, flying: map[transitions.Ref]*command{}, history: map[address][]transitions.Entry{},
		heads: map[string]int64{}, dead: map[transitions.MessageRef]*deadMessage{}, fakes: map[activity]fake{}}
}

// Now is what the clock says.
func (s *Sim) Now() time.Time { return s.now }

// newID counts the instances, so that a run is the same every time.
func (s *Sim) newID() uuid.UUID {
	s.ids++
	return uuid.MustParse(fmt.Sprintf("00000000-0000-7000-8000-%012d", s.ids))
}

func (s *Sim) next() int {
	s.numbers++
	return s.numbers
}

// Submit does a command as an engine does: decides it, answers a retry with the first answer, and accepts what takes time. Nothing that
// takes time is begun before the clock moves; see [Sim.Settle].
//
// The errors are those of an engine. A Hook's SQL is not run.
func (s *Sim) Submit(c transitions.Command) (transitions.Receipt, error) {
	p, err := decide.Accept(c)
	if err != nil {
		return transitions.Receipt{}, err
	}
	if p.Workflow == "" && p.Instance != uuid.Nil {
		inst, err := s.Instance(p.Tenant, p.Instance)
		if err != nil {
			return transitions.Receipt{}, err
		}
		p.Workflow = inst.Workflow
	}
	if err := s.workflows.Resolve(p, s.newID); err != nil {
		return transitions.Receipt{}, err
	}
	return s.commit(p)
}

// Operate does what an operator asks, as an engine does: pause, resume or migrate the
// instance that c names, or retry, resolve or abandon a stuck command.
func (s *Sim) Operate(c transitions.Command, o transitions.Operation) (transitions.Receipt, error) {
	c = c.WithDefaults()
	if o.Target.Scope != "" {
		target := s.commands[transitions.Ref{Tenant: c.Tenant, Scope: o.Target.Scope, Key: o.Target.Key}]
		if target == nil {
			return transitions.Receipt{}, errNoCommand()
		}
		c.Instance, c.Workflow = target.Instance, target.Workflow
	} else if inst := s.instances[address{c.Tenant, c.Instance}]; inst != nil {
		c.Workflow = inst.Workflow
	}
	p, err := decide.Operate(c, o, s.workflows.Migrations(c.Workflow, o.To)...)
	if err != nil {
		return transitions.Receipt{}, err
	}
	return s.commit(p)
}

// Cancel asks a command in flight to stop. One that waits ends as soon as the clock moves; one that is finished is returned as it is.
func (s *Sim) Cancel(tenant, scope, key, by string) (transitions.Record, error) {
	c := s.commands[transitions.Ref{Tenant: tenantOr(tenant), Scope: scope, Key: key}]
	if c == nil {
		return transitions.Record{}, errNoCommand()
	}
	if c.InFlight() && c.Phase != transitions.Undoing && c.CancelledBy == "" {
		s.cancel(c, by)
	}
	return c.Record, nil
}

// Command is what is stored under a key. Errors: CommandNotFound, KeyExpired.
func (s *Sim) Command(tenant, scope, key string) (transitions.Record, error) {
	c := s.commands[transitions.Ref{Tenant: tenantOr(tenant), Scope: scope, Key: key}]
	if c == nil {
		return transitions.Record{}, errNoCommand()
	}
	if decide.Classify(&c.Record, c.Fingerprint, s.now) == decide.KeyGone {
		_, err := decide.KeyGone.Answer(&c.Record)
		return transitions.Record{}, err
	}
	return c.Record, nil
}

func errNoCommand() error {
	return transitions.UnknownCommand()
}

func tenantOr(tenant string) string { return transitions.Command{Tenant: tenant}.WithDefaults().Tenant }

// InFlight lists the commands that are accepted and not finished, timers among them, in the order of their arrival.
func (s *Sim) InFlight() []transitions.Record {
	return s.list(func(*command) bool { return true })
}

// Stuck lists the commands that wait for an operator, in the order of their arrival.
func (s *Sim) Stuck() []transitions.Record {
	return s.list(func(c *command) bool { return c.Stuck != "" })
}

func (s *Sim) list(choose func(*command) bool) (list []transitions.Record) {
	for _, c := range sorted(s.flying) {
		if choose(c) {
			list = append(list, c.Record)
		}
	}
	return list
}

func sorted(commands map[transitions.Ref]*command) []*command {
	return slices.SortedFunc(maps.Values(commands), func(a, b *command) int { return cmp.Compare(a.number, b.number) })
}

// Instance is an instance as it stands. Error: InstanceNotFound.
func (s *Sim) Instance(tenant string, id uuid.UUID) (transitions.Instance, error) {
	inst := s.instances[address{tenantOr(tenant), id}]
	if inst == nil {
		return transitions.Instance{}, workflow.Errorf(workflow.InstanceNotFound, "there is no instance %s", id)
	}
	return *inst, nil
}

// History are the transitions of an instance, oldest first. Their hashes are zero.
func (s *Sim) History(tenant string, id uuid.UUID) []transitions.Entry {
	return slices.Clone(s.history[address{tenantOr(tenant), id}])
}

// Events are all events so far, of all tenants, in the order in which they happened.
func (s *Sim) Events() []transitions.Event { return slices.Clone(s.events) }

// Timer is a timer that is armed.
type Timer struct {
	Name string
	Do   string // the transition that it causes
	At   time.Time
}

// Timers are the timers of an instance that are armed, the next one first.
func (s *Sim) Timers(tenant string, id uuid.UUID) (armed []Timer) {
	for _, c := range sorted(s.flying) {
		if c.tenant != tenantOr(tenant) || c.Instance != id {
			continue
		}
		if name, is := strings.CutPrefix(c.Scope, decide.TimerScope(id, "")); is {
			armed = append(armed, Timer{Name: name, Do: c.Transition, At: c.RunAt})
		}
	}
	slices.SortStableFunc(armed, func(a, b Timer) int { return a.At.Compare(b.At) })
	return armed
}
