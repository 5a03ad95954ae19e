package engine

import (
	"context"
	"errors"
	"sync"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/engine/internal/commit"
	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/internal/kernel/store"
	"github.com/pawlhq/pawl/tracing"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Submit executes a command once, and returns the same receipt on every retry. It returns when the outcome is durable.
//
// The receipt of a command that continues in flight (an activity, a scheduled command) reports that, and so does the receipt of a duplicate
// until the command is finished; see [transitions.Receipt.InFlight] and [Engine.Await].
//
// A command that was decided and refused (illegal transition, guard, version, business key) has a receipt with the refusal; see
// [transitions.Receipt.Err]. Errors are of type *workflow.Error and mean that nothing is stored under the key, with one exception: after
// TimedOut or Unavailable the outcome may be durable, and a retry with the same key returns it. If the queue is full the command is refused
// at once with Overloaded.
func (e *Engine) Submit(ctx context.Context, c transitions.Command) (transitions.Receipt, error) {
	if err := e.pipeline.Admit(); err != nil {
		return transitions.Receipt{}, err
	}
	p, err := decide.Accept(c)
	if err != nil {
		return transitions.Receipt{}, err
	}
	if err := e.resolve(ctx, e.config.Pool, p); err != nil {
		return e.doneBefore(ctx, e.config.Pool, p, err)
	}
	receipt, err := e.do(ctx, p)
	e.remember(p, transitions.Reply{Receipt: receipt, Err: err})
	return receipt, err
}

// do brings a command through the pipeline.
func (e *Engine) do(ctx context.Context, p *decide.Prepared) (transitions.Receipt, error) {
	ctx, span := e.trace(ctx, p)
	receipt, err := e.pipeline.Do(ctx, p)
	span.End(outcomeOf(receipt, err))
	return receipt, err
}

// manyChunk is how many commands of SubmitMany are prepared before they are
// queued, so that the pipeline begins while the rest is being prepared.
const manyChunk = 256

// SubmitMany submits many commands and returns one reply for each, in order. It waits for space in the queues instead of being refused.
//
// Commands of one instance are executed in their order. If one of them fails temporarily (a retryable error, or a defect of the workflow's
// code), the later ones of that instance are not executed, and their error has its code and names its key: so submitting the whole list
// again is always correct. If a command whose business key is only in its payload cannot be prepared temporarily, its instance is unknown:
// later commands of that instance may get InstanceNotFound, which is not stored either.
func (e *Engine) SubmitMany(ctx context.Context, cs []transitions.Command) []transitions.Reply {
	ctx, span := tracing.Start(ctx, e.config.Tracer, tracing.Step{Kind: tracing.Submit, Count: len(cs)})
	defer span.End(tracing.Outcome{})
	replies := make([]transitions.Reply, len(cs))
	ticket := e.pipeline.Ticket()
	var submitted []*decide.Prepared
	var places []int // of their replies
	var failed error // nothing after it can be prepared
	broken := map[instanceKey]error{}
	for begin := 0; begin < len(cs); begin += manyChunk {
		first := len(submitted)
		for i := begin; i < min(begin+manyChunk, len(cs)); i++ {
			if replies[i].Err = failed; failed != nil {
				continue
			}
			p, err := decide.Accept(cs[i])
			if err != nil {
				replies[i].Err = err
				continue
			}
			if len(broken) > 0 {
				if replies[i].Err = broken[instanceOf(p)]; replies[i].Err != nil {
					continue
				}
			}
			if err := e.resolve(ctx, e.config.Pool, p); err != nil {
				replies[i].Receipt, err = e.doneBefore(ctx, e.config.Pool, p, err)
				replies[i].Err = err
				switch code := workflow.CodeOf(err); {
				case err == nil || !code.Info().Retry:
				case code != workflow.Internal && code != workflow.NotOnThisNode:
					failed = err
				case instanceOf(p).id != uuid.Nil:
					broken[instanceOf(p)] = commit.Behind(p.Key, err)
				}
				continue
			}
			p.Trace = span.Context()
			submitted, places = append(submitted, p), append(places, i)
		}
		ticket.SubmitMany(ctx, submitted[first:])
	}
	for n, reply := range ticket.Wait(ctx) {
		replies[places[n]] = reply
		e.remember(submitted[n], reply)
	}
	return replies
}

// SubmitTx executes a command in the caller's transaction: it is durable if and when that commits. The receipt has no position; the
// transition gets it at commit, so an open transaction does not block the log, and followers see the transition within a second after the
// commit. The caller must not use tx concurrently. The commit is durable whatever the synchronous_commit of tx is. A commit of many
// commands holds the log while it numbers them: keep it to about a thousand.
//
// A caller that writes rows of its own submits first, and writes only if the receipt is neither refused nor Replayed: a replay means that
// an earlier transaction has committed both.
//
// After an error of the database or the workflow the transaction can continue, without any trace of the command. If ctx ends meanwhile, pgx
// closes the connection. The transaction should be READ COMMITTED, PostgreSQL's default: at another level its commit fails if another
// transaction of the tenant has committed since it began.
func (e *Engine) SubmitTx(ctx context.Context, tx pgx.Tx, c transitions.Command) (transitions.Receipt, error) {
	p, err := decide.Accept(c)
	if err != nil {
		return transitions.Receipt{}, err
	}
	if err := e.resolve(ctx, tx, p); err != nil {
		return e.doneBefore(ctx, tx, p, err)
	}
	ctx, span := e.trace(ctx, p)
	receipt, err := e.pipeline.RunTx(ctx, tx, p)
	span.End(outcomeOf(receipt, err))
	return receipt, err
}

// resolve finds the command's workflow, and resolves the command with the versions that this node knows. q may be the caller's transaction.
func (e *Engine) resolve(ctx context.Context, q store.Querier, p *decide.Prepared) (err error) {
	if p.Workflow == "" && p.Instance != uuid.Nil {
		if p.Workflow, err = e.workflowOf(ctx, q, p.Tenant, p.Instance); err != nil {
			return err
		}
	}
	return e.registry.Resolve(p, newID)
}

// doneBefore returns the stored result of a command that resolve refuses, if an earlier version of the workflow accepted it.
func (e *Engine) doneBefore(ctx context.Context, q store.Querier, p *decide.Prepared, failure error) (transitions.Receipt, error) {
	if p.Workflow == "" {
		return transitions.Receipt{}, failure
	}
	for _, p := range p.EarlierReadings() {
		r, err := e.reader.Record(ctx, q, transitions.Ref{Tenant: p.Tenant, Scope: p.Scope, Key: p.Key})
		switch {
		case workflow.CodeOf(err) == workflow.CommandNotFound:
		case err != nil:
			return transitions.Receipt{}, err
		case p.WasStored(&r):
			return decide.Classify(&r, p.Fingerprint, e.clock.Now()).Answer(&r)
		}
	}
	return transitions.Receipt{}, e.elsewhere(ctx, q, p, failure)
}

// elsewhere returns the error of a command that resolve refuses: NotOnThisNode if another node may accept it, otherwise failure. Only a
// node that knows the version of the instance decides what is a transition or a payload. q may be the caller's transaction.
func (e *Engine) elsewhere(ctx context.Context, q store.Querier, p *decide.Prepared, failure error) error {
	about := transitions.About{Workflow: p.Workflow, Instance: instanceOf(p).id}
	return e.elsewhereAbout(ctx, q, p.Tenant, about, failure, func() error { return e.resolve(ctx, q, p) })
}

// elsewhereAbout is like elsewhere, also for a message. Without a workflow any newer version may accept it. again prepares once more, with
// what this node has read since.
func (e *Engine) elsewhereAbout(
	ctx context.Context, q store.Querier, tenant string, about transitions.About, failure error, again func() error,
) error {
	switch workflow.CodeOf(failure) {
	case workflow.TransitionNotFound, workflow.InvalidPayload, workflow.MessageNotTaken:
	case workflow.InvalidRequest:
		if !errors.Is(failure, decide.ErrOnlyCreates) {
			return failure
		}
	default:
		return failure
	}
	if about.Instance != uuid.Nil {
		inst, err := e.reader.InstanceBy(ctx, q, tenant, about.Instance)
		switch {
		case err == nil:
			if _, err := decide.VersionFor(nil, &inst, e.registry.Find); err != nil {
				return err
			}
			return failure
		case workflow.CodeOf(err) != workflow.InstanceNotFound:
			return err
		}
	}
	known, begins, err := e.presence.rows.Elsewhere(ctx, q, e.presence.node, presenceLost)
	if err != nil {
		return err
	}
	begun := e.registry.Begun(begins)
	if !begun {
		e.presence.want()
	}
	if !begun || e.registry.Behind(about.Workflow, known) || again() == nil {
		return &workflow.Error{Code: workflow.NotOnThisNode, Cause: failure,
			Message: "a newer version of the workflow is known to another node, and not to this one yet; send it again"}
	}
	return failure
}

// trace starts the span of a resolved command, so only known names enter it. The command's context becomes that of the span, or none.
func (e *Engine) trace(ctx context.Context, p *decide.Prepared) (context.Context, tracing.Span) {
	if e.config.Tracer == nil {
		p.Trace = ""
		return ctx, tracing.None
	}
	s := tracing.Step{Kind: tracing.Submit, Parent: p.Trace, Tenant: p.Tenant, Workflow: p.Workflow, Transition: p.Transition}
	if !p.Creates {
		s.Instance = p.Instance
	}
	ctx, span := tracing.Start(ctx, e.config.Tracer, s)
	p.Trace = span.Context()
	return ctx, span
}

// outcomeOf returns the outcome of a command's span. A refusal is not an error.
func outcomeOf(r transitions.Receipt, err error) tracing.Outcome {
	if err != nil {
		return tracing.Outcome{Error: string(workflow.CodeOf(err))}
	}
	return tracing.Outcome{Status: r.Status, Replayed: r.Replayed}
}

// instanceKey identifies an instance.
type instanceKey struct {
	tenant string
	id     uuid.UUID
}

// instanceOf returns the instance that a command names before it is resolved, if any.
func instanceOf(p *decide.Prepared) instanceKey {
	if p.Instance == uuid.Nil && p.BusinessKey != "" {
		return instanceKey{p.Tenant, workflow.InstanceID(p.Tenant, p.Workflow, p.BusinessKey)}
	}
	return instanceKey{p.Tenant, p.Instance}
}

// names caches the workflows of instances, which never change. It keeps two generations: a full young one becomes the old one, and entries
// that are used again become young. So it holds the most recent instances in bounded memory.
type names struct {
	mu         sync.Mutex
	young, old map[instanceKey]string
}

const namesGeneration = 32_768

func (n *names) get(k instanceKey) (string, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	name, ok := n.young[k]
	if !ok {
		if name, ok = n.old[k]; ok {
			n.add(k, name)
		}
	}
	return name, ok
}

func (n *names) put(k instanceKey, name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.add(k, name)
}

func (n *names) add(k instanceKey, name string) {
	if len(n.young) >= namesGeneration {
		n.young, n.old = map[instanceKey]string{}, n.young
	}
	n.young[k] = name
}

// workflowOf returns the workflow of an instance.
func (e *Engine) workflowOf(ctx context.Context, q store.Querier, tenant string, id uuid.UUID) (string, error) {
	k := instanceKey{tenant, id}
	if name, ok := e.names.get(k); ok {
		return name, nil
	}
	name, err := e.reader.WorkflowOf(ctx, q, tenant, id)
	if err == nil {
		e.names.put(k, name)
	}
	return name, err
}

// remember caches the workflow of an instance that the command created.
func (e *Engine) remember(p *decide.Prepared, r transitions.Reply) {
	if r.Err == nil && p.Creates && !r.Receipt.Refused() {
		e.names.put(instanceKey{p.Tenant, r.Receipt.Instance}, p.Workflow)
	}
}
