package decide

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// leastTombstone is the minimum time for which an expired message, or an instance of a migration, is remembered, whatever its workflow
// declares: the sender does not know the workflow's setting.
const leastTombstone = 30 * 24 * time.Hour

// rememberLong has the key of a command stay for so long.
func rememberLong(c *transitions.Command, w *workflow.Workflow) {
	if said := w.Horizons.Tombstone; said != 0 && said < leastTombstone {
		c.Tombstone = leastTombstone
	}
}

// MessageRoute is a step that receives messages from a consumer.
type MessageRoute struct {
	Workflow  *workflow.Workflow   // the version that new instances begin with
	Others    []*workflow.Workflow // of it, the newest first
	Step      *workflow.Step
	Reception *workflow.Reception
}

// MessageRoutes lists what receives messages from each consumer, in the order in which
// they are asked. first is the version of every workflow that new instances begin with, by name; others
// gives the other versions of one, the newest of them first. Those that are newer are asked too: instances may be on them.
func MessageRoutes(first []*workflow.Workflow, others func(name string) []*workflow.Workflow) map[string][]MessageRoute {
	routes := map[string][]MessageRoute{}
	for _, w := range first {
		rest := others(w.Name)
		add := func(steps []*workflow.Step) {
			for _, s := range steps {
				for _, r := range s.Receives {
					routes[r.Consumer] = append(routes[r.Consumer], MessageRoute{w, rest, s, r})
				}
			}
		}
		add(w.Steps)
		for _, other := range rest {
			if other.Version > w.Version { // it begins no instance yet, or not any more
				add(slices.DeleteFunc(slices.Clone(other.Steps), func(s *workflow.Step) bool { return s.Start }))
			}
		}
	}
	return routes
}

// PrepareMessage makes the command ready that a message asks for: that of the
// first route that takes it. newID is as in Prepare. Which instance and payload
// the command has may change with the code; by its key and fingerprint it is
// still the same command. Its tombstone stays for 30 days at least, also where the
// workflow's bound is less.
//
// Errors: workflow.ErrIgnored where there is nothing to be done about it;
// MessageNotTaken; InvalidPayload, Internal and others of Prepare, which say that
// it has been taken and cannot become a command.
func PrepareMessage(m transitions.Message, routes []MessageRoute, newID func() uuid.UUID) (*Prepared, error) {
	if err := m.Check(); err != nil {
		return nil, err
	}
	route, c, err := commandOf(m, routes)
	if err != nil {
		return nil, err
	}
	rememberLong(&c, route.Workflow)
	p, err := prepare(c, route.Step.Start, route.Workflow, newID, route.Others...)
	if err != nil {
		return nil, err
	}
	p.Fingerprint = m.Hash()
	return p, nil
}

// commandOf is what the message asks for.
func commandOf(m transitions.Message, routes []MessageRoute) (route MessageRoute, c transitions.Command, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &workflow.Error{Code: workflow.Internal, Message: "the workflow's code failed",
				Cause: fmt.Errorf("panic in what %s.%s makes of a message of %q: %v\n%s",
					route.Workflow.Name, route.Step.Name, m.Consumer, v, debug.Stack())}
		}
	}()
	seen := workflow.Message{Tenant: m.Tenant, Consumer: m.Consumer, ID: m.ID, Type: m.Type, Body: m.Body}
	var unread *workflow.Error
	var ignored bool
	for _, route = range routes {
		address, payload, err := route.Reception.Take(seen)
		switch {
		case err == nil:
			scope := transitions.InboxScope(m.Consumer)
			return route, transitions.Command{Tenant: m.Tenant, Scope: scope, Key: m.ID, Actor: scope, Roles: []string{transitions.AnyRole},
				Workflow: route.Workflow.Name, Transition: route.Step.Name,
				Instance: address.Instance, BusinessKey: address.BusinessKey, Payload: payload}, nil
		case errors.Is(err, workflow.ErrIgnored):
			ignored = true
		case errors.Is(err, workflow.ErrNotMine):
			if e, ok := errors.AsType[*workflow.Error](err); ok && unread == nil {
				unread = e
			}
		default:
			return route, c, err
		}
	}
	switch {
	case ignored:
		return route, c, workflow.ErrIgnored
	case unread != nil:
		return route, c, &workflow.Error{Code: unread.Code, Message: "the message cannot be read", Fields: unread.Fields, Cause: unread.Cause}
	}
	return route, c, workflow.Errorf(workflow.MessageNotTaken, "no transition takes this message of consumer %q, type %q", m.Consumer, m.Type)
}

// AboutMessage asks the routes what a message is for, once more: for the list of those
// that were not consumed.
func AboutMessage(m transitions.Message, routes []MessageRoute) transitions.About {
	if m.Check() != nil {
		return transitions.About{}
	}
	if p, err := PrepareMessage(m, routes, func() uuid.UUID { return uuid.Nil }); err == nil {
		return transitions.About{Workflow: p.Workflow, BusinessKey: p.BusinessKey, Instance: p.Instance}
	}
	_, c, err := commandOf(m, routes)
	if err != nil {
		return transitions.About{}
	}
	if transitions.TextProblem(c.BusinessKey, workflow.MaxBusinessKey) != "" { // it cannot be stored
		c.BusinessKey = ""
	}
	if c.BusinessKey != "" {
		c.Instance = transitions.InstanceID(m.WithDefaults().Tenant, c.Workflow, c.BusinessKey)
	}
	return transitions.About{Workflow: c.Workflow, BusinessKey: c.BusinessKey, Instance: c.Instance}
}
