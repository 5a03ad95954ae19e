package transitions

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/workflow"
)

// Limits of a message's parts, in bytes.
const (
	MaxConsumer = workflow.MaxConsumer
	MaxMessage  = 1 << 20 // of a body
)

// Message is what somebody outside has sent: one delivery of it.
type Message struct {
	Tenant   string // "" is "default"
	Consumer string // who consumes it, 1 to 249 bytes
	ID       string // the sender's id, 1 to 255 bytes; the same whenever he sends it again
	Type     string // what the sender calls it; "" is the member "type" of the body, where it has one
	Body     []byte // as it was sent, up to 1 MiB
	Delivery int    // which delivery this is, from 1; 0: nobody counts them
	Earlier  bool   // there may have been deliveries that are not counted
}

// A message is a command. Its scope is this and the consumer, its key is the id,
// its fingerprint the hash of the body.
const inboxScope = "inbox:"

// messageTombstone is how long a message is remembered at least when its answer has
// expired, whatever its workflow says: who sends it again does not know that.
const messageTombstone = 30 * 24 * time.Hour

// InboxScope is the scope of the commands that a consumer's messages become. It is
// their actor as well.
func InboxScope(consumer string) string { return inboxScope + consumer }

// WithDefaults fills what may be left empty.
func (m Message) WithDefaults() Message {
	if m.Tenant == "" {
		m.Tenant = DefaultTenant
	}
	if m.Type == "" {
		m.Type = typeOf(m.Body)
	}
	return m
}

// Check refuses what cannot be stored. It does not look into the body. Only of a
// message that is otherwise in order it says TooLarge: that can be listed as dead.
func (m Message) Check() error {
	if err := CheckTenant(m.Tenant); err != nil {
		return err
	}
	if m.Consumer == "" {
		return workflow.Errorf(workflow.InvalidRequest, "the consumer of the message is missing")
	}
	if problem := TextProblem(m.Consumer, MaxConsumer); problem != "" {
		return workflow.Errorf(workflow.InvalidRequest, "the consumer of the message %s", problem)
	}
	if m.ID == "" {
		return workflow.Errorf(workflow.InvalidRequest, "the id of the message is missing")
	}
	if problem := TextProblem(m.ID, MaxKey); problem != "" {
		return workflow.Errorf(workflow.InvalidRequest, "the id of the message %s", problem)
	}
	if problem := TextProblem(m.Type, MaxKey); problem != "" {
		return workflow.Errorf(workflow.InvalidRequest, "the type of the message %s", problem)
	}
	if len(m.Body) > MaxMessage {
		return workflow.Errorf(workflow.TooLarge, "the message is larger than %d bytes", MaxMessage)
	}
	return nil
}

// Hash tells two messages apart that have one id: SHA-256 of the body.
func (m Message) Hash() [32]byte { return sha256.Sum256(m.Body) }

// MessageRoute is a step that receives messages from a consumer.
type MessageRoute struct {
	Workflow  *workflow.Workflow // the newest version
	Older     []*workflow.Workflow
	Step      *workflow.Step
	Reception *workflow.Reception
}

// MessageRoutes lists what receives messages from each consumer, in the order in which
// they are asked. newest is the newest version of every workflow, by name; older
// gives the others of one, the newest of them first.
func MessageRoutes(newest []*workflow.Workflow, older func(name string) []*workflow.Workflow) map[string][]MessageRoute {
	routes := map[string][]MessageRoute{}
	for _, w := range newest {
		for _, s := range w.Steps {
			for _, r := range s.Receives {
				routes[r.Consumer] = append(routes[r.Consumer], MessageRoute{w, older(w.Name), s, r})
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
func PrepareMessage(m Message, routes []MessageRoute, newID func() uuid.UUID) (*Prepared, error) {
	if err := m.Check(); err != nil {
		return nil, err
	}
	route, c, err := m.command(routes)
	if err != nil {
		return nil, err
	}
	if asked := route.Workflow.Horizons.Tombstone; asked != 0 && asked < messageTombstone {
		c.Tombstone = messageTombstone
	}
	p, err := prepare(c, route.Workflow, newID, route.Older...)
	if err != nil {
		return nil, err
	}
	p.Fingerprint = m.Hash()
	return p, nil
}

// command is what the message asks for.
func (m Message) command(routes []MessageRoute) (route MessageRoute, c Command, err error) {
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
			scope := InboxScope(m.Consumer)
			return route, Command{Tenant: m.Tenant, Scope: scope, Key: m.ID, Actor: scope, Roles: []string{AnyRole},
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

// MessageRef names a message: two with one id are two messages.
type MessageRef struct {
	Tenant   string
	Consumer string
	ID       string
	Hash     [32]byte
}

// Ref is the name of the message.
func (m Message) Ref() MessageRef { return MessageRef{m.Tenant, m.Consumer, m.ID, m.Hash()} }
