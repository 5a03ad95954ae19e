package engine

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/engine/internal/commit"
	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/workflow"
)

// InTx lets a transition execute the user's SQL in the transaction that commits it, after the decision and before its rows are written:
//
//	engine.InTx(workflow.On("pay", workflow.From(Placed), Paid, pay), writeLedger)
//
// run gets the data after the transition and the payload. The transaction belongs to the command; run must not commit it or roll it back. A
// [workflow.Refuse] is stored as the final refusal and undoes the writes of run. Any other error undoes the whole command, stores nothing,
// and is answered as an internal error, except TimedOut for a cancelled statement (57014) and Locked for a lock that was not available
// (55P03). After a serialization failure, a deadlock or a lost connection, run is called again for the same command in another transaction,
// up to three times.
//
// Changes of the session by run (settings, role, temporary tables, advisory locks, prepared statements) end with the command. Behind a
// pooler only SET LOCAL is allowed.
func InTx[D, P any](t *workflow.Transition[D, P],
	run func(ctx context.Context, tx pgx.Tx, data D, payload P) error) *workflow.Transition[D, P] {
	return t.Hook(hook[D, P]{run})
}

type hook[D, P any] struct {
	run func(ctx context.Context, tx pgx.Tx, data D, payload P) error
}

var _ commit.Hook = hook[int, int]{}

// RunTx implements commit.Hook.
func (h hook[D, P]) RunTx(ctx context.Context, tx pgx.Tx, p *decide.Prepared, d *decide.Decision) error {
	decoded, err := d.Step.Decode(p.Canonical) // by the version of the instance, not by the newest
	if err != nil {
		return err
	}
	data, payload, err := d.Step.Typed(d.Entry.Data, decoded)
	if err != nil {
		return err
	}
	err = h.run(ctx, tx, data.(D), payload.(P))
	if e, ok := errors.AsType[*workflow.Error](err); ok && e.Code != workflow.GuardRefused {
		// Only a refusal is the caller's business.
		return &workflow.Error{Code: workflow.Internal, Message: "the workflow's code failed", Cause: err}
	}
	return err
}
