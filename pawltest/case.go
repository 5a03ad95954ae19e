package pawltest

import (
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Case is an instance of the default tenant, and an actor on it: an actor with all rights unless [Case.As] selects another.
type Case struct {
	ID    uuid.UUID
	sim   *Sim
	actor string
	roles []string
}

// Start creates an instance, and fails the test where that is refused. The
// payload is encoded as JSON; nil is an empty one, and a []byte is JSON already.
func (s *Sim) Start(workflowName, transition string, payload any) *Case {
	s.t.Helper()
	r, err := s.Submit(transitions.Command{Key: s.newKey(), Workflow: workflowName, Transition: transition, Payload: payloadOf(s, payload),
		Roles: []string{transitions.AnyRole}})
	if err == nil {
		err = r.Err()
	}
	if err != nil {
		s.t.Fatalf("pawltest: %s.%s: %v", workflowName, transition, err)
	}
	return s.Case(r.Instance)
}

// Case is a known instance.
func (s *Sim) Case(id uuid.UUID) *Case {
	return &Case{ID: id, sim: s, actor: transitions.DefaultActor, roles: []string{transitions.AnyRole}}
}

func (s *Sim) newKey() string {
	s.keys++
	return fmt.Sprintf("key-%d", s.keys)
}

func payloadOf(s *Sim, payload any) []byte {
	s.t.Helper()
	switch p := payload.(type) {
	case nil:
		return nil
	case []byte:
		return p
	}
	return encode(s, payload)
}

// As returns the case with another actor, who has only these roles.
func (c *Case) As(actor string, roles ...string) *Case {
	other := *c
	other.actor, other.roles = actor, slices.Clone(roles)
	return &other
}

// Try does a transition, under a key of its own, and says why not where it is refused. A command that takes time is accepted, and is done
// when the clock moves: see [Sim.Await].
func (c *Case) Try(transition string, payload any) (transitions.Receipt, error) {
	c.sim.t.Helper()
	r, err := c.sim.Submit(transitions.Command{Key: c.sim.newKey(), Instance: c.ID, Transition: transition, Payload: payloadOf(c.sim, payload),
		Actor: c.actor, Roles: c.roles})
	if err == nil {
		err = r.Err()
	}
	return r, err
}

// Do is Try, and fails the test where the transition is refused.
func (c *Case) Do(transition string, payload any) transitions.Receipt {
	c.sim.t.Helper()
	r, err := c.Try(transition, payload)
	if err != nil {
		c.sim.t.Fatalf("pawltest: %s: %v", transition, err)
	}
	return r
}

// Instance is the instance as it stands.
func (c *Case) Instance() transitions.Instance {
	c.sim.t.Helper()
	inst, err := c.sim.Instance("", c.ID)
	if err != nil {
		c.sim.t.Fatalf("pawltest: %v", err)
	}
	return inst
}

// State is the state that the instance is in.
func (c *Case) State() workflow.State {
	c.sim.t.Helper()
	return c.Instance().State
}

// Explain says what the actor can do with the instance now, and why not: every transition of its workflow but the starts.
func (c *Case) Explain() []inspect.Option {
	c.sim.t.Helper()
	inst := c.Instance()
	return decide.Explain(c.sim.workflows.Find(inst.Workflow, inst.Definition), &inst, c.actor, c.roles, c.sim.now)
}

// History are its transitions so far, oldest first.
func (c *Case) History() []transitions.Entry { return c.sim.History("", c.ID) }

// Steps are the names of its transitions so far. An activity has two: its name
// with ".accepted", and, when it has ended, its name, or that with ".failed".
func (c *Case) Steps() (names []string) {
	for _, e := range c.History() {
		names = append(names, e.Transition)
	}
	return names
}

// Timers are its timers that are armed, the next one first.
func (c *Case) Timers() []Timer { return c.sim.Timers("", c.ID) }

// Children are the instances that it has started, in order.
func (c *Case) Children() (children []*Case) {
	for _, command := range sorted(c.sim.commands) {
		child := c.sim.instances[address{transitions.DefaultTenant, command.Instance}]
		if child != nil && child.Links.Parent != nil && child.Links.Parent.Instance == c.ID && command.Version == 1 {
			children = append(children, c.sim.Case(child.ID))
		}
	}
	return children
}

// Data are the instance's data.
func Data[D any](c *Case) D {
	c.sim.t.Helper()
	return decode[D](c.sim, c.Instance().Data)
}
