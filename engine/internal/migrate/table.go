package migrate

import (
	"context"
	"errors"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/kernel/store"
	"github.com/pawlhq/pawl/workflow"
)

// Table is the table of migrations. It needs no runner.
type Table struct {
	pool                                                                *pgxpool.Pool
	insert, ofKey, list, stop, claim, give, turnPage, countPage, finish string
}

// columns are those of an inspect.Migration.
const columns = `m.id, m.workflow, m.from_version, m.to_version, m.per_second, m.actor, coalesce(m.proof, ''), coalesce(m.reason, ''),
	m.created_at, m.expected, m.migrated, m.skipped, m.rejected, m.waiting, coalesce(m.held, ''), coalesce(m.claimed_by, ''),
	coalesce(m.locked_until, m.next_at), m.refusals, m.stopped_at, m.ended_at, coalesce(m.key, ''),
	coalesce(m.stopped_by, ''), coalesce(m.stop_reason, '')`

// held is the condition of whatever a node writes about the batch that it does.
const held = ` WHERE m.id = $1 AND m.token = $2 AND m.ended_at IS NULL`

// unflushed has a statement's own transaction wait for no disk. That is for what a node notes about a page: the page that it is about to do
// is on the disk before the page's transitions, because the log is written in order; and where a crash loses that a page was done and
// counted, it is done once more, by the same keys, and counted by their answers.
const unflushed = ` FROM (SELECT set_config('synchronous_commit', 'off', true)) AS unflushed`

// NewTable prepares to work. in puts the schema's name into a statement.
func NewTable(pool *pgxpool.Pool, in func(sql string) string) *Table {
	return &Table{
		pool: pool,
		insert: in(`INSERT INTO {pawl}.instance_migration AS m
	(workflow, from_version, to_version, per_second, actor, proof, reason, created_at, expected, key)
SELECT $1, $2, $3, $4, $5, nullif($6, ''), nullif($7, ''), $8, $9, nullif($10, '') FROM {pawl}.durable() RETURNING ` + columns),
		ofKey: in(`SELECT ` + columns + ` FROM {pawl}.instance_migration m WHERE m.key = $1`),
		list:  in(`SELECT ` + columns + ` FROM {pawl}.instance_migration m WHERE ($1::bigint = 0 OR m.id = $1) ORDER BY m.id DESC LIMIT $2`),
		stop: in(`UPDATE {pawl}.instance_migration AS m SET stopped_at = coalesce(m.stopped_at, $2),
	stopped_by = coalesce(m.stopped_by, $3), stop_reason = CASE WHEN m.stopped_at IS NULL THEN nullif($4, '') ELSE m.stop_reason END,
	ended_at = CASE WHEN f.free THEN $2 END, page = CASE WHEN NOT f.free THEN m.page END,
	claimed_by = CASE WHEN NOT f.free THEN m.claimed_by END, claimed_at = CASE WHEN NOT f.free THEN m.claimed_at END,
	locked_until = CASE WHEN NOT f.free THEN m.locked_until END
FROM (SELECT x.id, x.page IS NULL OR coalesce(x.locked_until, x.next_at) < clock_timestamp() - interval '1 minute' AS free
	FROM {pawl}.instance_migration x WHERE x.id = $1 FOR NO KEY UPDATE) AS f, {pawl}.durable()
WHERE m.id = f.id AND m.ended_at IS NULL`),
		claim: in(`UPDATE {pawl}.instance_migration AS m SET token = m.token + 1, claimed_by = $1, claimed_at = clock_timestamp(),
	locked_until = clock_timestamp() + $2::bigint * interval '1 microsecond'
FROM (SELECT x.id FROM {pawl}.instance_migration x
	WHERE x.ended_at IS NULL AND x.workflow || ' ' || x.from_version || ' ' || x.to_version = ANY ($3::text[])
	AND (x.locked_until < clock_timestamp() OR x.locked_until IS NULL AND x.next_at <= clock_timestamp())
	ORDER BY x.next_at LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED) AS found
WHERE m.id = found.id RETURNING ` + columns + `, m.token, m.place, m.page`),
		give: in(`UPDATE {pawl}.instance_migration AS m SET claimed_by = NULL, claimed_at = NULL, locked_until = NULL,
	next_at = clock_timestamp() + $3::bigint * interval '1 microsecond', held = nullif($4, ''), waiting = $5, place = $6` + held),
		turnPage: in(`UPDATE {pawl}.instance_migration AS m SET page = $3, place = $5,
	locked_until = clock_timestamp() + $4::bigint * interval '1 microsecond'` + unflushed + held + ` AND m.stopped_at IS NULL`),
		countPage: in(`UPDATE {pawl}.instance_migration AS m SET page = NULL, place = $3, migrated = m.migrated + $4, skipped = m.skipped + $5,
	rejected = m.rejected + $6, refusals = $7, held = NULL, locked_until = clock_timestamp() + $8::bigint * interval '1 microsecond'` +
			unflushed + held + ` RETURNING m.stopped_at IS NOT NULL`),
		finish: in(`UPDATE {pawl}.instance_migration AS m SET ended_at = $3, claimed_by = NULL, claimed_at = NULL, locked_until = NULL,
	waiting = $4, held = nullif($5, ''), place = '{}'` + held),
	}
}

// batch is a migration as the node knows it that does it.
type batch struct {
	inspect.Migration
	token int64
	place place
	page  []item // nil: none is under way
}

// place is how far a look at all instances is.
type place struct {
	store.OpenPlace
	Taken   int64  `json:"taken,omitempty"`   // decided in this look
	Waiting int64  `json:"waiting,omitempty"` // not taken for now
	Why     string `json:"why,omitempty"`     // why the last of these was not
}

// item is an instance of a page.
type item struct {
	Tenant string         `json:"tenant"`
	ID     uuid.UUID      `json:"id"`
	State  workflow.State `json:"state"` // as it was seen
}

// scan reads a row.
func scan(row pgx.CollectableRow, more ...any) (m inspect.Migration, err error) {
	var refusals []byte
	var stopped, ended *time.Time
	err = row.Scan(append([]any{&m.ID, &m.Workflow, &m.From, &m.To, &m.PerSecond, &m.Actor, &m.Proof, &m.Reason, &m.CreatedAt, &m.Expected,
		&m.Migrated, &m.Skipped, &m.Rejected, &m.Waiting, &m.Held, &m.Node, &m.Next, &refusals, &stopped, &ended,
		&m.Key, &m.StoppedBy, &m.StopReason}, more...)...)
	if err == nil {
		err = json.Unmarshal(refusals, &m.Refusals, json.MatchCaseInsensitiveNames(true)) // earlier builds wrote State, not state
	}
	m.CreatedAt, m.Next = m.CreatedAt.UTC(), m.Next.UTC()
	for into, at := range map[*time.Time]*time.Time{&m.StoppedAt: stopped, &m.EndedAt: ended} {
		if at != nil {
			*into = at.UTC()
		}
	}
	return m, err
}

// Begin writes a new one down, or finds the one that was asked for with the same key. Errors: Conflict where one of the workflow
// has not ended; KeyReused where the key is that of another request.
func (t *Table) Begin(ctx context.Context, m inspect.Migration) (inspect.Migration, error) {
	found, err := t.pool.Query(ctx, t.insert, m.Workflow, m.From, m.To, m.PerSecond, m.Actor, m.Proof, m.Reason, m.CreatedAt, m.Expected,
		m.Key)
	var begun inspect.Migration
	if err == nil {
		begun, err = pgx.CollectExactlyOneRow(found, func(row pgx.CollectableRow) (inspect.Migration, error) { return scan(row) })
	}
	e, refused := errors.AsType[*pgconn.PgError](err)
	if refused && m.Key != "" && e.Code == "23505" { // of whichever index: both may refuse the same request
		if known, is, err := t.asked(ctx, &m); is || err != nil {
			return known, err
		}
	}
	if refused && e.ConstraintName == "instance_migration_open" {
		return m, workflow.Errorf(workflow.Conflict, "a migration of workflow %q is under way; it has to end, or to be stopped, before the next",
			m.Workflow)
	}
	if err != nil {
		return m, &workflow.Error{Code: workflow.Unavailable, Message: "the database could not be written; try again", Cause: err}
	}
	return begun, nil
}

// asked finds the migration that has the key. Error: KeyReused.
func (t *Table) asked(ctx context.Context, m *inspect.Migration) (known inspect.Migration, is bool, err error) {
	found, err := t.pool.Query(ctx, t.ofKey, m.Key)
	if err == nil {
		known, err = pgx.CollectExactlyOneRow(found, func(row pgx.CollectableRow) (inspect.Migration, error) { return scan(row) })
	}
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return known, false, nil
	case err != nil:
		return known, false, store.ReadError("migrations", err)
	case known.Workflow != m.Workflow || known.From != m.From || known.To != m.To || known.PerSecond != m.PerSecond ||
		known.Actor != m.Actor || known.Reason != m.Reason:
		return known, false, workflow.Errorf(workflow.KeyReused, "the key was used for migration %d, which is another one", known.ID)
	}
	return known, true, nil
}

// List lists the newest, or the one with an id. Error: NotFound.
func (t *Table) List(ctx context.Context, id int64, limit int) ([]inspect.Migration, error) {
	found, err := t.pool.Query(ctx, t.list, id, limit)
	if err == nil {
		var list []inspect.Migration
		list, err = pgx.CollectRows(found, func(row pgx.CollectableRow) (inspect.Migration, error) { return scan(row) })
		if err == nil && id != 0 && len(list) == 0 {
			return nil, workflow.Errorf(workflow.NotFound, "there is no migration %d", id)
		}
		if err == nil {
			return list, nil
		}
	}
	return nil, store.ReadError("migrations", err)
}

// Stop requests the end of a migration. It ends at once, or when the instances in progress are counted. If no node has had the plan for a
// minute, it ends without that. A migration that has ended does not change, and the first request is the one recorded.
func (t *Table) Stop(ctx context.Context, id int64, at time.Time, actor, reason string) error {
	if _, err := t.pool.Exec(ctx, t.stop, id, at, actor, reason); err != nil {
		return &workflow.Error{Code: workflow.Unavailable, Message: "the database could not be written; try again", Cause: err}
	}
	return nil
}

// claimOne leases a batch for which this node has the plan, nil for none.
func (t *Table) claimOne(ctx context.Context, node string, lease time.Duration, plans []string) (*batch, error) {
	found, err := t.pool.Query(ctx, t.claim, node, lease.Microseconds(), plans)
	if err != nil {
		return nil, err
	}
	b, err := pgx.CollectExactlyOneRow(found, func(row pgx.CollectableRow) (b batch, err error) {
		var where, page []byte
		if b.Migration, err = scan(row, &b.token, &where, &page); err != nil {
			return b, err
		}
		if err := json.Unmarshal(where, &b.place); err != nil || page == nil {
			return b, err
		}
		return b, json.Unmarshal(page, &b.page)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return &b, err
}

// errLost is the end of a lease, or of the batch.
var errLost = errors.New("migrate: the batch is another node's, or has ended")

// write runs a statement about a batch that this node does, and says so where it does it no more.
func (t *Table) write(ctx context.Context, b *batch, sql string, args ...any) error {
	tag, err := t.pool.Exec(ctx, sql, append([]any{b.ID, b.token}, args...)...)
	if err == nil && tag.RowsAffected() == 0 {
		return errLost
	}
	return err
}

// asJSON is for what has nothing that JSON cannot say.
func asJSON(v any) string {
	raw, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		panic("migrate: " + err.Error())
	}
	return string(raw)
}
