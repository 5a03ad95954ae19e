package pawltest

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// maxDeliveries is how often a message is delivered whose instance is not there, as on an engine with its defaults.
const maxDeliveries = 20

// Consume does once what a message from outside asks for, as an engine does, and answers the same message alike however often it comes. One
// that is not done is among [Sim.DeadMessages], or should come again: that is for the test to do. The errors are those of an engine.
//
// A message needs a Consumer, an ID and a Body; its Type is that of the body where the test does not say it.
func (s *Sim) Consume(m transitions.Message) (transitions.Receipt, error) {
	m = m.WithDefaults()
	if err := m.Check(); err != nil && workflow.CodeOf(err) != workflow.TooLarge {
		return transitions.Receipt{}, err
	}
	receipt, err := s.deliver(m)
	switch decide.FateOf(m, receipt, err, maxDeliveries) {
	case decide.FateDone:
		if m.Delivery != 1 || m.Earlier {
			delete(s.dead, m.Ref())
		}
	case decide.FateDead:
		failure := err
		if failure == nil {
			failure = receipt.Err()
		}
		d := s.dead[m.Ref()]
		if d == nil {
			d = &deadMessage{number: s.next(), DeadMessage: inspect.DeadMessage{MessageRef: m.Ref(), Size: len(m.Body), CreatedAt: s.now}}
			if d.Size <= transitions.MaxMessage {
				d.Body = m.Body
			}
			s.dead[m.Ref()] = d
		}
		d.About = decide.AboutMessage(m, s.workflows.Routes()[m.Consumer])
		d.Type, d.Status, d.Code, d.Failure = m.Type, inspect.MessageWaiting, workflow.CodeOf(failure), failureOf(failure)
		d.Deliveries, d.UpdatedAt = max(d.Deliveries+1, m.Delivery), s.now
	}
	return receipt, err
}

// deliver commits the command that the message asks for.
func (s *Sim) deliver(m transitions.Message) (transitions.Receipt, error) {
	p, err := decide.PrepareMessage(m, s.workflows.Routes()[m.Consumer], s.newID)
	switch {
	case errors.Is(err, workflow.ErrIgnored):
		return decide.IgnoredMessage(), nil
	case err != nil: // it may have become a command before
		if c := s.commands[transitions.Ref{Tenant: m.Tenant, Scope: transitions.InboxScope(m.Consumer), Key: m.ID}]; c != nil {
			return decide.AnswerMessage(m, &c.Record, s.now)
		}
		return transitions.Receipt{}, err
	}
	receipt, err := s.commit(p)
	if workflow.CodeOf(err) == workflow.KeyReused {
		return receipt, decide.MessageReused()
	}
	return receipt, err
}

// failureOf is what the list tells of a failure.
func failureOf(failure error) string {
	if e, ok := errors.AsType[*workflow.Error](failure); ok {
		return e.Detail()
	}
	return failure.Error()
}

// deadMessage is a message on the list, with its place.
type deadMessage struct {
	inspect.DeadMessage
	number int
}

// DeadMessages are the messages that were not done and wait for an operator, or to be sent again, in the order in which they failed first.
func (s *Sim) DeadMessages() (list []inspect.DeadMessage) {
	for _, d := range slices.SortedFunc(maps.Values(s.dead), func(a, b *deadMessage) int { return cmp.Compare(a.number, b.number) }) {
		list = append(list, d.DeadMessage)
	}
	return list
}
