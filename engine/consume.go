package engine

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/tracing"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Consume executes a message once: the first transition that receives it becomes a command whose key is the message's id. It returns when
// the outcome is durable. The same message has the same answer on every delivery to every node. The answer determines the acknowledgement:
//
//   - A receipt, or KeyExpired: the message is done, or its activity continues by itself. It need not be delivered again.
//   - A receipt of a refusal, or an error whose code is not retryable: the message is on the list of dead messages and needs an
//     operator.
//   - InstanceNotFound: the instance may be created later, so the message should be delivered again. It is put on the list of dead
//     messages after Config.MaxDeliveries deliveries, or at once if deliveries are not counted. A later delivery that succeeds removes
//     it.
//   - Paused: it should be delivered again. If deliveries are not counted it is listed until then, because a pause may be longer than
//     its sender retries.
//   - NotOnThisNode: another node knows a newer version of the workflow. It should be delivered again.
//   - Any other error: it should be delivered again. It is not listed, except for Internal.
//
// If m.Keep is positive the original is stored before that; see [Admin.KeptMessages].
//
// Errors: those of Submit; MessageReused, MessageNotTaken; InvalidPayload for an unreadable message; TooLarge for more than
// transitions.MaxMessage bytes, listed without its body. A message without an id, or one that cannot be stored for another reason, is
// InvalidRequest and not listed.
func (e *Engine) Consume(ctx context.Context, m transitions.Message) (transitions.Receipt, error) {
	receipt, _, err := e.consume(ctx, m)
	return receipt, err
}

func (e *Engine) consume(ctx context.Context, m transitions.Message) (transitions.Receipt, decide.Fate, error) {
	m = m.WithDefaults()
	if err := m.Check(); err != nil && workflow.CodeOf(err) != workflow.TooLarge {
		return transitions.Receipt{}, decide.FateOver, err
	}
	// The original is committed in a transaction of its own before the command. A crash between the two leaves an original without an
	// effect until the next delivery, but no effect without its original, and the commit pipeline stays as it is.
	if m.Keep > 0 && len(m.Body) <= transitions.MaxMessage {
		if err := e.inbox.Keep(ctx, m, e.clock.Now()); err != nil {
			return transitions.Receipt{}, decide.FateLater, err
		}
	}
	receipt, err := e.deliver(ctx, m)
	fate := decide.FateOf(m, receipt, err, e.config.MaxDeliveries)
	switch fate {
	case decide.FateDone:
		if m.Delivery == 1 && !m.Earlier {
			break // there is no earlier failure of it
		}
		err := e.inbox.Done(ctx, m.Ref())
		if err != nil && m.Delivery > 0 { // it comes again, has its answer, and is taken off then
			return receipt, decide.FateLater, err
		}
		if err != nil {
			e.config.Log.WarnContext(ctx, "a message that is done stays on the list of dead ones; retry it there",
				"consumer", m.Consumer, "message", m.ID, "error", err)
		}
	case decide.FateDead:
		failure := err
		if failure == nil {
			failure = receipt.Err()
		}
		fresh, putErr := e.inbox.Put(ctx, m, decide.AboutMessage(m, e.registry.Routes()[m.Consumer]), failure, e.clock.Now())
		if putErr != nil {
			return transitions.Receipt{}, decide.FateLater, putErr
		}
		if fresh {
			e.config.Log.WarnContext(ctx, "a message is on the list of dead ones", "tenant", m.Tenant, "consumer", m.Consumer,
				"message", m.ID, "error", failure)
		}
	}
	return receipt, fate, err
}

// deliver submits the message's command. Only names of known consumers enter a span.
func (e *Engine) deliver(ctx context.Context, m transitions.Message) (receipt transitions.Receipt, err error) {
	span := tracing.None
	if e.config.Tracer != nil && e.registry.Routes()[m.Consumer] != nil {
		ctx, span = tracing.Start(ctx, e.config.Tracer, tracing.Step{Kind: tracing.Consume, Parent: m.Trace,
			Tenant: m.Tenant, Name: m.Consumer, ID: m.ID})
	}
	defer func() { span.End(outcomeOf(receipt, err)) }()
	prepare := func() (*decide.Prepared, error) {
		return decide.PrepareMessage(m, e.registry.Routes()[m.Consumer], newID)
	}
	p, err := prepare()
	switch {
	case errors.Is(err, workflow.ErrIgnored):
		return decide.IgnoredMessage(), nil
	case err != nil: // it may have become a command before: the code has changed since, or its consumer uses SQL
		failure := err
		r, err := e.reader.Record(ctx, nil, transitions.Ref{Tenant: m.Tenant, Scope: transitions.InboxScope(m.Consumer), Key: m.ID})
		switch {
		case workflow.CodeOf(err) == workflow.CommandNotFound:
			about := decide.AboutMessage(m, e.registry.Routes()[m.Consumer])
			again := func() error { _, err := prepare(); return err }
			return transitions.Receipt{}, e.elsewhereAbout(ctx, e.config.Pool, m.Tenant, about, failure, again)
		case err != nil:
			return transitions.Receipt{}, err
		}
		return decide.AnswerMessage(m, &r, e.clock.Now())
	}
	p.Trace = span.Context()
	receipt, err = e.pipeline.Do(ctx, p)
	e.remember(p, transitions.Reply{Receipt: receipt, Err: err})
	switch {
	case workflow.CodeOf(err) == workflow.KeyReused:
		return receipt, decide.MessageReused()
	case err == nil && receipt.InFlight() && receipt.Record.Phase == transitions.InSQL:
		// Who holds it may roll back.
		return transitions.Receipt{}, workflow.Errorf(workflow.InProgress, "the message is being worked on; deliver it again later")
	}
	return receipt, err
}

// receive is Consume for a source.
func (e *Engine) receive(ctx context.Context, m transitions.Message) error {
	_, fate, err := e.consume(ctx, m)
	switch {
	case fate == decide.FateLater:
		return err
	case fate == decide.FateOver && workflow.CodeOf(err) != workflow.KeyExpired:
		e.config.Log.ErrorContext(ctx, "a message cannot be stored, and is dropped", "tenant", m.Tenant, "consumer", m.Consumer,
			"message", m.ID, "bytes", len(m.Body), "error", err)
	}
	return nil
}

// Consumers lists whose messages some workflow receives, by name.
func (a *Admin) Consumers() []string { return slices.Sorted(maps.Keys(a.e.registry.Routes())) }
