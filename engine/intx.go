package engine

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/engine/internal/commit"
	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/workflow"
)

// InTx lets a transition run the user's own SQL in the transaction that commits
// it, after the decision and before its rows are written:
//
//	engine.InTx(workflow.On("pay", workflow.From(Placed), Paid, pay), writeLedger)
//
// run gets the data after the transition and the payload; the transaction is
// the command's own and must not be committed or rolled back. A
// [workflow.Refuse] refuses the command for good and undoes what run wrote. Any
// other error undoes the whole command, stores nothing, and is answered as an
// internal error; but TimedOut where a statement was cancelled (57014), and Locked
// where it could not have a lock (55P03). After a serialization failure or a
// deadlock run is called again for the same command, in another transaction, and
// when the connection ends, up to three times.
//
// What run does to the session (settings, role, temporary tables, advisory locks,
// prepared statements) ends with the command; not behind a pooler, where only
// SET LOCAL is allowed.
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
