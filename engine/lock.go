package engine

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawlhq/pawl/internal/kernel/store"
	"github.com/pawlhq/pawl/schema"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// MaxResource is the longest name of a resource, in bytes.
const MaxResource = 255

// Lock waits for the lock of a resource that no row stands for, such as one
// settlement of a merchant and a day, and holds it until tx ends. A caller of SQL
// gets the same lock by pawl.lock. Take it first: before commands, and several in
// one order everywhere.
//
// Errors: InvalidRequest; Locked, when tx has waited for as long as its
// lock_timeout says; TimedOut, when ctx has ended; Unavailable. After all but the
// first tx can only be rolled back.
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
