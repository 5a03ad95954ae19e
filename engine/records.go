package engine

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

const (
	// recordColumns are what scanRecord reads, after the request: of a command
	// named c and the audit row of its transition, named a.
	recordColumns = `c.scope, c.key, c.fingerprint, c.status, c.workflow, c.transition, c.instance, coalesce(c.version, 0),
	coalesce(a.position, 0), coalesce(c.code, 0), c.body, c.actor, c.created_at, coalesce(c.updated_at, c.finished_at, c.created_at),
	c.finished_at, c.expires_at, coalesce(c.phase, ''), coalesce(c.attempt, 0), coalesce(c.failures, 0), coalesce(c.revision, 0),
	coalesce(c.claimed_by, ''), c.claimed_at, coalesce(c.locked_until, c.held_until), c.run_at, c.progress::text, coalesce(c.failure, ''),
	coalesce(c.stuck, ''), coalesce(c.cancelled_by, '')`

	recordAudit = ` LEFT JOIN LATERAL (SELECT a.position FROM pawl.audit a
	WHERE a.tenant = $1 AND a.instance = c.instance AND a.version = c.version LIMIT 1) a ON true`

	recordSQL = `SELECT c.request::text, ` + recordColumns + ` FROM pawl.command c` + recordAudit + `
WHERE c.tenant = $1 AND c.scope = $2 AND c.key = $3`

	// recordsSQL leaves the requests out: they can be large, never change, and are
	// read again and again while somebody watches.
	recordsSQL = `SELECT NULL::text, ` + recordColumns + ` FROM unnest($2::text[], $3::text[]) AS u(scope, key)
CROSS JOIN LATERAL (SELECT * FROM pawl.command c WHERE c.tenant = $1 AND c.scope = u.scope AND c.key = u.key LIMIT 1) c` + recordAudit
)

// plannedNow has a statement planned whenever it runs. A plan that was made when
// the table was all but empty, and kept, would scan it when it is full.
const plannedNow = pgx.QueryExecModeCacheDescribe

// record reads a command. Error: CommandNotFound.
func (q *queries) record(ctx context.Context, tenant, scope, key string) (transitions.Record, error) {
	return q.recordBy(ctx, q.pool, tenant, scope, key)
}

// recordBy is record in a transaction, or on the pool.
func (q *queries) recordBy(ctx context.Context, by querier, tenant, scope, key string) (transitions.Record, error) {
	if err := checkRef(transitions.Ref{Tenant: tenant, Scope: scope, Key: key}); err != nil {
		return transitions.Record{}, err
	}
	found, err := by.Query(ctx, q.recordSQL, plannedNow, tenant, scope, key)
	if err != nil {
		return transitions.Record{}, readError("command", err)
	}
	r, err := pgx.CollectExactlyOneRow(found, readRecord)
	if errors.Is(err, pgx.ErrNoRows) {
		return r, errNoCommand()
	}
	if err != nil {
		return r, readError("command", err)
	}
	return r, nil
}

// records reads those of a tenant's commands that are there, without their
// requests.
func (q *queries) records(ctx context.Context, tenant string, refs []transitions.Ref) ([]transitions.Record, error) {
	scopes, keys := make([]string, len(refs)), make([]string, len(refs))
	for i, r := range refs {
		scopes[i], keys[i] = r.Scope, r.Key
	}
	found, err := q.pool.Query(ctx, q.recordsSQL, plannedNow, tenant, scopes, keys)
	if err != nil {
		return nil, readError("commands", err)
	}
	list, err := pgx.CollectRows(found, readRecord)
	if err != nil {
		return nil, readError("commands", err)
	}
	return list, nil
}

// checkRef says that there is no command of a name that cannot be stored:
// PostgreSQL would fail the query.
func checkRef(ref transitions.Ref) error {
	if transitions.CheckTenant(ref.Tenant) != nil || transitions.CheckScope(ref.Scope) != nil || transitions.CheckKey(ref.Key) != nil {
		return errNoCommand()
	}
	return nil
}

func errNoCommand() error {
	return workflow.Errorf(workflow.CommandNotFound, "there is no command with this scope and key")
}

// readRecord is scanRecord of a row that has no more.
func readRecord(row pgx.CollectableRow) (transitions.Record, error) { return scanRecord(row) }

// scanRecord reads a request and recordColumns, and then more.
func scanRecord(row pgx.CollectableRow, more ...any) (r transitions.Record, err error) {
	var request, body, progress *string
	var fingerprint []byte
	var finished, expires, claimed, locked, due *time.Time
	err = row.Scan(append([]any{&request, &r.Scope, &r.Key, &fingerprint, &r.Status, &r.Workflow, &r.Transition, &r.Instance, &r.Version,
		&r.Position, &r.Code, &body, &r.Actor, &r.CreatedAt, &r.UpdatedAt,
		&finished, &expires, &r.Phase, &r.Attempt, &r.Failures, &r.Revision,
		&r.ClaimedBy, &claimed, &locked, &due, &progress, &r.Failure,
		&r.Stuck, &r.CancelledBy}, more...)...)
	if err != nil {
		return r, err
	}
	copy(r.Fingerprint[:], fingerprint)
	r.Request, r.Body, r.Progress = bytesOf(request), bytesOf(body), bytesOf(progress)
	r.CreatedAt, r.UpdatedAt = r.CreatedAt.UTC(), r.UpdatedAt.UTC()
	r.FinishedAt, r.ExpiresAt = timeOf(finished), timeOf(expires)
	r.ClaimedAt, r.LockedUntil, r.RunAt = timeOf(claimed), timeOf(locked), timeOf(due)
	return r, nil
}

// bytesOf is a text that may be NULL.
func bytesOf(text *string) []byte {
	if text == nil {
		return nil
	}
	return []byte(*text)
}

// timeOf is a time that may be NULL.
func timeOf(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}
