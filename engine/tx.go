package engine

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawlhq/pawl/engine/internal/commit"
	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/internal/kernel/store"
	"github.com/pawlhq/pawl/schema"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// MaxResource is the longest name of a resource, in bytes.
const MaxResource = 255

// Lock waits for the lock of a resource that no row stands for, such as one settlement of a merchant and a day, and holds it until tx ends.
// A caller of SQL gets the same lock by pawl.lock. Take it first: before commands, and several in one order everywhere.
//
// Errors: InvalidRequest; Locked, when tx has waited for as long as its lock_timeout says; TimedOut, when ctx has ended; Unavailable. After
// all but the first tx can only be rolled back.
func (e *Engine) Lock(ctx context.Context, tx pgx.Tx, tenant, resource string) error {
	if err := checkResource(tenant, resource); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, schema.In(e.config.Schema, "SELECT {pawl}.lock($1, $2)"), resource, tenantOr(tenant))
	return lockError(err)
}

// TryLock is like Lock, but returns false instead of waiting if another transaction holds the lock.
func (e *Engine) TryLock(ctx context.Context, tx pgx.Tx, tenant, resource string) (locked bool, err error) {
	if err := checkResource(tenant, resource); err != nil {
		return false, err
	}
	err = tx.QueryRow(ctx, schema.In(e.config.Schema, "SELECT {pawl}.try_lock($1, $2)"), resource, tenantOr(tenant)).Scan(&locked)
	return locked, lockError(err)
}

func checkResource(tenant, resource string) error {
	problem := transitions.TextProblem(resource, MaxResource)
	if resource == "" {
		problem = "is missing"
	}
	if problem != "" {
		return workflow.Errorf(workflow.InvalidRequest, "the resource %s", problem)
	}
	return transitions.CheckTenant(tenant)
}

func lockError(err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == "55P03" {
		return &workflow.Error{Code: workflow.Locked, Message: "another transaction holds the resource; try again in a new one", Cause: err}
	}
	return store.ReadError("lock", err)
}

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
