package apikey

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/workflow"
)

// Database is the part of a pool that a Table needs.
type Database interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	BeginTx(ctx context.Context, o pgx.TxOptions) (pgx.Tx, error)
}

// Table stores the keys of one schema. Its methods return *workflow.Error: NotFound for an unknown key, Conflict, InvalidRequest,
// Unavailable, TimedOut.
type Table struct {
	db Database
	in func(sql string) string // inserts the schema's name
}

// NewTable returns a table that uses db. in inserts the schema's name into a statement.
func NewTable(db Database, in func(sql string) string) *Table {
	return &Table{db, in}
}

// plannedNow replans a statement each time: a plan cached for an empty table would scan it when it is full.
const plannedNow = pgx.QueryExecModeCacheDescribe

// Create creates a key with the fields that Check validates, and returns it with its text, which is never shown again. Errors:
// InvalidRequest; Conflict if the tenant has an unrevoked key with this name, so that a repeated request creates one key.
func (t *Table) Create(ctx context.Context, k Key) (made Key, text string, err error) {
	if err := k.Check(time.Now()); err != nil {
		return made, "", err
	}
	k.ID = newID()
	text, k.hash = newText(k.ID)
	if k.Roles == nil {
		k.Roles = []string{} // not NULL
	}
	err = t.change(ctx, "make a key", func(tx pgx.Tx) (err error) {
		made, err = one(tx.Query(ctx, t.in(createSQL), plannedNow, k.ID, k.Tenant, k.Name, k.Actor, k.Roles,
			texts(k.Grants), k.hash[:], k.CreatedBy, zeronull.Timestamptz(k.ExpiresAt)))
		if !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		var other string
		if err := tx.QueryRow(ctx, t.in(namedSQL), plannedNow, k.Tenant, k.Name).Scan(&other); err != nil {
			return err
		}
		return workflow.Errorf(workflow.Conflict, "the key %s has the name %q; if its text was lost, rotate or revoke it", other, k.Name)
	})
	return made, text, err
}

// Get returns a key of a tenant, or of any for "".
func (t *Table) Get(ctx context.Context, tenant, id string) (k Key, err error) {
	if !IsID(id) {
		return k, errNoKey
	}
	k, err = one(t.db.Query(ctx, t.in(getSQL), plannedNow, id, tenant))
	return k, found("read a key", err)
}

// List returns a page and reports whether there are more.
func (t *Table) List(ctx context.Context, f Filter) (page []Key, more bool, err error) {
	page, err = all(t.db.Query(ctx, t.in(listSQL), plannedNow, f.Tenant, f.After.Tenant, f.After.CreatedAt, f.After.ID, f.Limit+1))
	if err != nil {
		return nil, false, unavailable("read the keys", err)
	}
	if len(page) > f.Limit {
		return page[:f.Limit], true, nil
	}
	return page, false, nil
}

// Rotate replaces the text of a key of a tenant, or of any for "", and returns the new text. Errors: NotFound; Conflict if the key is
// revoked or expired, or if a former text would expire early without confirmation.
func (t *Table) Rotate(ctx context.Context, tenant, id string, r Rotation) (k Key, text string, err error) {
	if !r.Lost && (r.Overlap < 0 || r.Overlap > MaxOverlap) {
		return k, "", workflow.Errorf(workflow.InvalidRequest, "a former text of a key is good for %s at most", MaxOverlap)
	}
	err = t.changeOne(ctx, "rotate a key", tenant, id, func(tx pgx.Tx, before Key) (err error) {
		former, ends, err := before.rotated(r, time.Now())
		if err != nil {
			return err
		}
		var h Hash
		text, h = newText(id)
		k, err = one(tx.Query(ctx, t.in(rotateSQL), plannedNow, id, h[:], former, zeronull.Timestamptz(ends), r.By))
		return err
	})
	return k, text, err
}

// rotated returns the former text of a rotated key and its expiry, or nil.
func (k *Key) rotated(r Rotation, now time.Time) (former []byte, ends time.Time, err error) {
	overlaps := k.FormerEnds.After(now)
	switch {
	case !k.RevokedAt.IsZero():
		return nil, ends, workflow.Errorf(workflow.Conflict, "the key is revoked; create a new one")
	case !k.ExpiresAt.IsZero() && !k.ExpiresAt.After(now):
		return nil, ends, workflow.Errorf(workflow.Conflict, "the key has expired; create a new one")
	case r.Lost && overlaps:
		return k.former[:], k.FormerEnds, nil
	case r.Lost || r.Overlap == 0:
		return nil, ends, nil
	case overlaps:
		return nil, ends, workflow.Errorf(workflow.Conflict, "the key was rotated %s ago, and its former text is good until %s; report the "+
			"newest text as lost, or use no overlap to end all of them", now.Sub(k.RotatedAt).Round(time.Second),
			k.FormerEnds.UTC().Format(time.RFC3339))
	}
	return k.hash[:], now.Add(r.Overlap), nil
}

// Revoke revokes a key of a tenant, or of any for "". It does not change a revoked key. Error: NotFound.
func (t *Table) Revoke(ctx context.Context, tenant, id, by string) (k Key, err error) {
	err = t.changeOne(ctx, "revoke a key", tenant, id, func(tx pgx.Tx, before Key) (err error) {
		if k = before; k.RevokedAt.IsZero() {
			k, err = one(tx.Query(ctx, t.in(revokeSQL), plannedNow, id, by))
		}
		return err
	})
	return k, err
}

// changeOne locks and changes a key.
func (t *Table) changeOne(ctx context.Context, what, tenant, id string, do func(pgx.Tx, Key) error) error {
	if !IsID(id) {
		return errNoKey
	}
	return t.change(ctx, what, func(tx pgx.Tx) error {
		before, err := one(tx.Query(ctx, t.in(lockSQL), plannedNow, id, tenant))
		if err != nil {
			return err
		}
		return do(tx, before)
	})
}

// change runs a transaction that is serialized by orderSQL.
func (t *Table) change(ctx context.Context, what string, do func(pgx.Tx) error) error {
	err := pgx.BeginTxFunc(ctx, t.db, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, t.in(orderSQL), plannedNow); err != nil {
			return err
		}
		return do(tx)
	})
	return found(what, err)
}

// newest returns the newest revision.
func (t *Table) newest(ctx context.Context) (n int64, err error) {
	rows, err := t.db.Query(ctx, t.in(newestSQL), plannedNow)
	if err != nil {
		return 0, err
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowTo[int64])
}

// maxChanged is the maximum number of changes per read.
const maxChanged = 100

// changed returns the first maxChanged keys changed at or after a revision, in the order of their changes.
func (t *Table) changed(ctx context.Context, from int64) ([]Key, error) {
	return all(t.db.Query(ctx, t.in(changedSQL), plannedNow, from, maxChanged))
}

// withIDs returns the existing keys with these ids.
func (t *Table) withIDs(ctx context.Context, ids []string) ([]Key, error) {
	return all(t.db.Query(ctx, t.in(askedSQL), plannedNow, ids))
}

// used stores the last uses of keys.
func (t *Table) used(ctx context.Context, ids []string, at []time.Time) error {
	_, err := t.db.Exec(ctx, t.in(usedSQL), plannedNow, ids, at)
	return err
}

func one(rows pgx.Rows, err error) (k Key, _ error) {
	if err != nil {
		return k, err
	}
	return pgx.CollectExactlyOneRow(rows, scan)
}

func all(rows pgx.Rows, err error) ([]Key, error) {
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scan)
}

func scan(row pgx.CollectableRow) (k Key, err error) {
	var grants []string
	var hash, former []byte
	null := func(t *time.Time) *zeronull.Timestamptz { return (*zeronull.Timestamptz)(t) }
	if err = row.Scan(&k.ID, &k.Tenant, &k.Name, &k.Actor, &k.Roles, &grants, &hash, &former, null(&k.FormerEnds), &k.CreatedAt, &k.CreatedBy,
		null(&k.RotatedAt), &k.RotatedBy, null(&k.ExpiresAt), null(&k.RevokedAt), &k.RevokedBy, null(&k.LastUsedAt), &k.revision); err != nil {
		return k, err
	}
	copy(k.hash[:], hash)
	copy(k.former[:], former)
	for _, at := range []*time.Time{&k.CreatedAt, &k.FormerEnds, &k.RotatedAt, &k.ExpiresAt, &k.RevokedAt, &k.LastUsedAt} {
		*at = at.UTC()
	}
	for _, text := range grants {
		if g, err := auth.ParseGrant(text); err == nil { // otherwise the right is unknown here
			k.Grants = append(k.Grants, g)
		}
	}
	return k, nil
}

func texts(grants auth.Grants) []string {
	all := make([]string, len(grants))
	for i, g := range grants {
		all[i] = g.String()
	}
	return all
}

var errNoKey = workflow.Errorf(workflow.NotFound, "there is no such key")

// found is unavailable, but returns NotFound without a row.
func found(what string, err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return errNoKey
	}
	return unavailable(what, err)
}

// unavailable wraps the error of a statement for the caller.
func unavailable(what string, err error) error {
	if err == nil {
		return nil
	}
	if _, is := errors.AsType[*workflow.Error](err); is {
		return err
	}
	e := &workflow.Error{Code: workflow.Unavailable, Message: "cannot access the keys; try again",
		Cause: fmt.Errorf("%s: %w", what, err)}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		e.Code, e.Message = workflow.TimedOut, "the database did not answer in time; try again"
	}
	return e
}

const (
	columns = `id, tenant, name, actor, roles, grants, hash, coalesce(former_hash, ''), former_ends, created_at, created_by, rotated_at,
		coalesce(rotated_by, ''), expires_at, revoked_at, coalesce(revoked_by, ''), last_used_at, revision`

	createSQL = `INSERT INTO {pawl}.api_key (id, tenant, name, actor, roles, grants, hash, created_at, created_by, expires_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, now(), $8, $9)
		ON CONFLICT (tenant, name) WHERE revoked_at IS NULL DO NOTHING RETURNING ` + columns
	namedSQL = `SELECT id FROM {pawl}.api_key WHERE tenant = $1 AND name = $2 AND revoked_at IS NULL`

	getSQL  = `SELECT ` + columns + ` FROM {pawl}.api_key WHERE id = $1 AND ($2 = '' OR tenant = $2)`
	lockSQL = getSQL + ` FOR NO KEY UPDATE`
	listSQL = `SELECT ` + columns + ` FROM {pawl}.api_key WHERE (tenant, created_at, id) > ($2, $3, $4) AND ($1 = '' OR tenant = $1)
		ORDER BY tenant, created_at, id LIMIT $5`

	// orderSQL serializes changes until they commit, so that a reader of a revision has seen all before it. The timeouts bound the delay by
	// a node that crashes during a change.
	orderSQL = `SELECT set_config('idle_in_transaction_session_timeout', '10s', true), set_config('lock_timeout', '30s', true), {pawl}.durable(),
		pg_advisory_xact_lock(hashtextextended('{pawl}.api_key', 0))`
	revision  = `revision = (SELECT max(revision) FROM {pawl}.api_key) + 1`
	rotateSQL = `UPDATE {pawl}.api_key SET hash = $2, former_hash = $3, former_ends = $4, rotated_at = now(), rotated_by = $5, ` + revision +
		` WHERE id = $1 RETURNING ` + columns
	revokeSQL = `UPDATE {pawl}.api_key SET revoked_at = now(), revoked_by = $2, former_hash = NULL, former_ends = NULL, ` + revision +
		` WHERE id = $1 RETURNING ` + columns

	newestSQL = `SELECT coalesce(max(revision), 0) FROM {pawl}.api_key`
	// changedSQL uses its index because of order and limit, even with the statistics of an empty table.
	changedSQL = `SELECT ` + columns + ` FROM {pawl}.api_key WHERE revision >= $1 ORDER BY revision LIMIT $2`
	askedSQL   = `SELECT ` + columns + ` FROM {pawl}.api_key WHERE id = ANY ($1)`

	// usedSQL skips rows that another node is writing, because it writes the same.
	usedSQL = `WITH late AS (SELECT k.id, u.at FROM unnest($1::text[], $2::timestamptz[]) AS u(id, at) JOIN {pawl}.api_key AS k ON k.id = u.id
			WHERE k.last_used_at IS NULL OR k.last_used_at < u.at ORDER BY k.id FOR NO KEY UPDATE OF k SKIP LOCKED)
		UPDATE {pawl}.api_key AS k SET last_used_at = late.at FROM late WHERE k.id = late.id`
)
