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

// leastTombstone is the minimum retention of the tombstones of messages and of instances of a batch migration, whatever the workflow
// declares: the sender does not know that.
const leastTombstone = 30 * 24 * time.Hour

// rememberLong applies leastTombstone.
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

// MessageRoutes returns the steps that receive messages, by consumer, in the order of evaluation. first are the default versions of the
// workflows, by name; others returns the other versions of a workflow, newest first. Newer ones also receive, because instances may have
// them.
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

// PrepareMessage prepares the command for a message by the first route that accepts it. newID is as in Resolve. Its instance and payload
// may change with the code, but not its key and fingerprint. Its tombstone is kept for at least 30 days.
//
// Errors: workflow.ErrIgnored for a message without effect; MessageNotTaken; those of Accept and Resolve for a message that was accepted
// and cannot become a command.
func PrepareMessage(m transitions.Message, routes []MessageRoute, newID func() uuid.UUID) (*Prepared, error) {
	if err := m.Check(); err != nil {
		return nil, err
	}
	route, c, err := commandOf(m, routes)
	if err != nil {
		return nil, err
	}
	rememberLong(&c, route.Workflow)
	p := &Prepared{Command: c, Creates: route.Step.Start}
	if err := p.check(); err != nil {
		return nil, err
	}
	if err := p.Resolve(newID, route.Workflow, route.Others...); err != nil {
		return nil, err
	}
	p.Fingerprint = m.Hash()
	return p, nil
}

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
			return route, transitions.Command{Tenant: m.Tenant, Key: m.ID, Actor: scope, Roles: []string{transitions.AnyRole},
				Workflow: route.Workflow.Name, Transition: route.Step.Name,
				Instance: address.Instance, BusinessKey: address.BusinessKey, Payload: payload, Options: transitions.Options{Scope: scope}}, nil
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

// AboutMessage returns the target of a message for the list of dead messages.
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

// Fate is the result of the delivery of a message.
type Fate int

// Fates.
const (
	FateDone  Fate = iota
	FateDead       // it is on the list of dead messages
	FateLater      // it should come again
	FateOver       // it was done long ago, or can be stored nowhere
)

// FateOf returns the fate of a delivery with this answer. If deliveries are counted, a message for an unknown instance is redelivered until
// delivery number most.
func FateOf(m transitions.Message, r transitions.Receipt, err error, most int) Fate {
	if err == nil {
		if r.Refused() && r.Version == 0 {
			return FateDead
		}
		return FateDone // what has failed after it was accepted is the workflow's to deal with
	}
	switch code := workflow.CodeOf(err); {
	case code == workflow.KeyExpired:
		return FateOver
	case code == workflow.InstanceNotFound && m.Delivery > 0 && m.Delivery < most:
		return FateLater
	case code == workflow.Paused && m.Delivery == 0:
		return FateDead
	case code == workflow.Internal || !code.Info().Retry:
		return FateDead
	default:
		return FateLater
	}
}

// IgnoredMessage returns the answer to an ignored message.
func IgnoredMessage() transitions.Receipt {
	return transitions.Receipt{Status: 200, Body: []byte(`{"ignored":true}`)}
}

// AnswerMessage returns the answer of the command that the message has become before. Error: MessageReused if another message has its id.
func AnswerMessage(m transitions.Message, r *transitions.Record, now time.Time) (transitions.Receipt, error) {
	if r.Fingerprint != m.Hash() {
		return transitions.Receipt{}, MessageReused()
	}
	return Classify(r, r.Fingerprint, now).Answer(r)
}

// MessageReused returns the error of a message whose id belongs to another message.
func MessageReused() error {
	return workflow.Errorf(workflow.MessageReused, "this message id was used with another payload; the sender has given two messages one id")
}
