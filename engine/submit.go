package engine

import (
	"cmp"
	"context"

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
	p, err := e.prepare(ctx, e.config.Pool, &c)
	if err != nil {
		return e.doneBefore(ctx, e.config.Pool, c, err)
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
	ctx, span := e.traceMany(ctx, len(cs))
	defer span.End(tracing.Outcome{})
	replies := make([]transitions.Reply, len(cs))
	ticket := e.pipeline.Ticket()
	var submitted []*decide.Prepared
	var places []int // of their replies
	var failed error // nothing after it can be prepared
	broken := map[address]error{}
	for begin := 0; begin < len(cs); begin += manyChunk {
		first := len(submitted)
		for i := begin; i < min(begin+manyChunk, len(cs)); i++ {
			if failed != nil {
				replies[i].Err = failed
				continue
			}
			c := cs[i].WithDefaults()
			if len(broken) > 0 {
				if replies[i].Err = broken[addressOf(c)]; replies[i].Err != nil {
					continue
				}
			}
			p, err := e.prepare(ctx, e.config.Pool, &c)
			if err != nil {
				replies[i].Receipt, err = e.doneBefore(ctx, e.config.Pool, c, err)
				replies[i].Err = err
				switch to := addressOf(c); {
				case err == nil || !workflow.CodeOf(err).Info().Retry:
				case workflow.CodeOf(err) != workflow.Internal && workflow.CodeOf(err) != workflow.NotOnThisNode:
					failed = err
				case to.id != uuid.Nil:
					broken[to] = commit.Behind(c.Key, err)
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

// address is the instance that a command names, if it names one.
type address struct {
	tenant string
	id     uuid.UUID
}

// addressOf returns the address of a command with defaults.
func addressOf(c transitions.Command) address {
	if c.Instance == uuid.Nil && c.BusinessKey != "" {
		c.Instance = transitions.InstanceID(c.Tenant, c.Workflow, c.BusinessKey)
	}
	return address{c.Tenant, c.Instance}
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
	p, err := e.prepare(ctx, tx, &c)
	if err != nil {
		return e.doneBefore(ctx, tx, c, err)
	}
	ctx, span := e.trace(ctx, p)
	receipt, err := e.pipeline.RunTx(ctx, tx, p)
	span.End(outcomeOf(receipt, err))
	return receipt, err
}

// DryRun says what a command would answer now, and does nothing. It needs no
// key, and looks at none; so its refusals are not final.
func (e *Engine) DryRun(ctx context.Context, c transitions.Command) (transitions.Receipt, error) {
	if c.Key == "" {
		c.Key = "dry-run"
	}
	p, err := e.prepare(ctx, e.config.Pool, &c)
	if err != nil {
		return transitions.Receipt{}, e.elsewhere(ctx, e.config.Pool, c, err)
	}
	var inst *transitions.Instance
	if !p.Creates || p.BusinessKey != "" {
		found, err := e.reader.Instance(ctx, p.Tenant, p.Instance)
		switch {
		case err == nil:
			inst = &found
		case workflow.CodeOf(err) != workflow.InstanceNotFound:
			return transitions.Receipt{}, err
		}
	}
	now := e.clock.Now()
	w, err := decide.VersionFor(p, inst, e.registry.Find)
	if err != nil {
		return transitions.Receipt{}, err
	}
	taken, unread := e.takenFor(ctx, p.Tenant)
	d := decide.DecideAll(p, w, inst, e.registry.Find, taken, now)
	if err := unread(); err != nil {
		return transitions.Receipt{}, err
	}
	if !d.Stored {
		return transitions.Receipt{}, d.Err
	}
	receipt := decide.ReceiptOf(p, &d, 0)
	if d.Flight != nil {
		receipt.Record = p.Begun(&d, now)
	}
	if receipt.Refused() {
		receipt.Body = transitions.ProblemOf(receipt.Err()).Unkept().JSON()
	}
	return receipt, nil
}

// takenFor reads which instances of a tenant there are, for a decision that is not committed. unread returns the first error.
func (e *Engine) takenFor(ctx context.Context, tenant string) (taken decide.Taken, unread func() error) {
	var failure error
	taken = func(id uuid.UUID) bool {
		_, err := e.reader.Instance(ctx, tenant, id)
		if err != nil && workflow.CodeOf(err) != workflow.InstanceNotFound {
			failure = cmp.Or(failure, err)
		}
		return err == nil
	}
	return taken, func() error { return failure }
}

// prepare applies the defaults of a command in place, finds its workflow and prepares it.
func (e *Engine) prepare(ctx context.Context, q store.Querier, c *transitions.Command) (*decide.Prepared, error) {
	*c = c.WithDefaults()
	if c.Workflow == "" && c.Instance != uuid.Nil {
		if err := decide.CheckCommand(*c); err != nil {
			return nil, err
		}
		name, err := e.workflowOf(ctx, q, c.Tenant, c.Instance)
		if err != nil {
			return nil, err
		}
		c.Workflow = name
	}
	return e.registry.Prepare(*c, newID)
}

// doneBefore returns the stored result of a command that prepare refuses, if an earlier version of the workflow accepted it.
func (e *Engine) doneBefore(ctx context.Context, q store.Querier, c transitions.Command, failure error) (transitions.Receipt, error) {
	if c.Workflow == "" {
		return transitions.Receipt{}, failure
	}
	for _, p := range decide.EarlierReadings(c) {
		r, err := e.reader.Record(ctx, q, transitions.Ref{Tenant: p.Tenant, Scope: p.Scope, Key: p.Key})
		switch {
		case workflow.CodeOf(err) == workflow.CommandNotFound:
		case err != nil:
			return transitions.Receipt{}, err
		case p.WasStored(&r):
			return decide.Classify(&r, p.Fingerprint, e.clock.Now()).Answer(&r)
		}
	}
	return transitions.Receipt{}, e.elsewhere(ctx, q, c, failure)
}

// workflowOf says what workflow an instance is of. That never changes, so it is
// remembered.
func (e *Engine) workflowOf(ctx context.Context, q store.Querier, tenant string, id uuid.UUID) (string, error) {
	if name, ok := e.names.get(tenant, id); ok {
		return name, nil
	}
	name, err := e.reader.WorkflowOf(ctx, q, tenant, id)
	if err == nil {
		e.names.put(tenant, id, name)
	}
	return name, err
}

// remember keeps what an instance made here is.
func (e *Engine) remember(p *decide.Prepared, r transitions.Reply) {
	if r.Err == nil && p.Creates && !r.Receipt.Refused() {
		e.names.put(p.Tenant, r.Receipt.Instance, p.Workflow)
	}
}
