package outbox

import (
	"context"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/internal/kernel/audit"
	"github.com/pawlhq/pawl/transitions"
)

// Querier is what reads; a pool, a connection or a transaction.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// Table reads the log of one schema.
type Table struct {
	q      Querier
	in     func(sql string) string
	source string
	after  string
	head   string
	heads  string
	each   string
	first  string
}

// New prepares to read with q. in puts the schema's name into a statement. source
// is that of the events, see [transitions.Event].
func New(q Querier, in func(sql string) string, source string) *Table {
	return &Table{q: q, in: in, source: source, after: in(afterSQL), head: in(headSQL), heads: in(headsSQL), each: in(eachSQL),
		first: in(firstSQL)}
}

// In puts the name of the table's schema into a statement.
func (t *Table) In(sql string) string { return t.in(sql) }

// Source is that of the events.
func (t *Table) Source() string { return t.source }

// The limit counts positions, not rows, so that a batch never ends between two
// events of one transition.
var afterSQL = `
SELECT o.position, o.type, o.ordinal, o.instance, o.at, ` + Details + `
FROM {pawl}.outbox o` + audited + `
WHERE o.tenant = $1 AND o.position > $2 AND o.position <= $3
ORDER BY o.position, o.ordinal`

// Details are the columns that Scan reads, of an event o and its audit row a. They are empty without such rows.
const Details = `coalesce(o.workflow, ''), coalesce(o.version, 0), coalesce(o.transition, ''), coalesce(o.state, ''),
	coalesce(o.business_key, ''), o.attributes, coalesce(a.cause, ''), coalesce(a.from_state, ''), coalesce(a.actor, ''),
	coalesce(a.reason, ''), coalesce(` + audit.ScopeOf + `, ''), coalesce(a.key, ''),
	CASE o.ordinal WHEN 0 THEN a.data ELSE o.payload END::text, coalesce(o.trace, '')`

// Scan reads a row of some columns, and then Details into an event.
func Scan(row pgx.CollectableRow, e *transitions.Event, columns ...any) error {
	err := row.Scan(append(columns, &e.Workflow, &e.Version, &e.Transition, &e.State, &e.BusinessKey, &e.Attributes, &e.Cause, &e.From,
		&e.Actor, &e.Reason, &e.Scope, &e.Key, &e.Payload, &e.Trace)...)
	e.Cause, e.CausedBy = transitions.CauseOf(e.Cause, e.Scope, e.Key)
	return err
}

// settings restrict a statement to index scans, even with a plan that the connection made for empty tables, and turn off JIT compilation.
// They end with the message.
const settings = `SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
	set_config('plan_cache_mode', 'force_generic_plan', true), set_config('jit', 'off', true)`

var headSQL = "SELECT " + HeadOf("$1")

// After returns the events of the next transitions after a position, at most
// limit transitions, in order. It ends early, after a whole transition, when the events have [transitions.PageBytes].
func (t *Table) After(ctx context.Context, tenant string, position int64, limit int) ([]transitions.Event, error) {
	to := position + int64(limit)
	if to < position {
		to = math.MaxInt64
	}
	var events []transitions.Event
	var b pgx.Batch
	b.Queue(settings)
	b.Queue(t.after, tenant, position, to).Query(func(rows pgx.Rows) error {
		defer rows.Close()
		for size := 0; rows.Next(); {
			e := transitions.Event{Source: t.source, Tenant: tenant}
			if err := Scan(rows, &e, &e.Position, &e.Type, &e.Ordinal, &e.Instance, &e.At); err != nil {
				return err
			}
			if size >= transitions.PageBytes && e.Position != events[len(events)-1].Position {
				return nil
			}
			size += len(e.Payload)
			e.At = e.At.UTC()
			events = append(events, e)
		}
		return rows.Err()
	})
	if err := t.q.SendBatch(ctx, &b).Close(); err != nil {
		return nil, fmt.Errorf("read log: %w", err)
	}
	return events, nil
}

// firstSQL finds the first retained position after another, or the position after the last one. Parameters: tenant, position.
var firstSQL = "SELECT coalesce((" + FirstAfter("position", "$1", "$2", "true") + "), " + HeadOf("$1") + " + 1)"

// First returns the first position after another whose events are retained or may still be written. Without such a position it returns the
// one after the last. If it is not the next position, retention has removed those in between.
func (t *Table) First(ctx context.Context, tenant string, after int64) (int64, error) {
	return t.number(ctx, t.first, tenant, after)
}

// Head is the position of the tenant's newest transition, 0 for an empty log.
func (t *Table) Head(ctx context.Context, tenant string) (int64, error) {
	return t.number(ctx, t.head, tenant)
}

func (t *Table) number(ctx context.Context, sql string, args ...any) (n int64, err error) {
	if err := t.q.QueryRow(ctx, sql, args...).Scan(&n); err != nil {
		return 0, fmt.Errorf("read log: %w", err)
	}
	return n, nil
}

var headsSQL = `SELECT u.tenant, l.head FROM unnest($1::text[]) AS u(tenant)` + JoinHead("u.tenant")

// Heads are the heads of several tenants' logs. An empty log has none.
func (t *Table) Heads(ctx context.Context, tenants []string) (map[string]int64, error) {
	heads := make(map[string]int64, len(tenants))
	var b pgx.Batch
	b.Queue(settings)
	b.Queue(t.heads, tenants).Query(func(rows pgx.Rows) error {
		return eachHead(rows, func(tenant string, head int64) { heads[tenant] = head })
	})
	if err := t.q.SendBatch(ctx, &b).Close(); err != nil {
		return nil, fmt.Errorf("read log heads: %w", err)
	}
	return heads, nil
}

const eachSQL = `SELECT tenant, head FROM ` + Logs

// EachHead does something with the head of every tenant's log.
func (t *Table) EachHead(ctx context.Context, do func(tenant string, head int64)) error {
	rows, err := t.q.Query(ctx, t.each)
	if err != nil {
		return fmt.Errorf("read log heads: %w", err)
	}
	if err := eachHead(rows, do); err != nil {
		return fmt.Errorf("read log heads: %w", err)
	}
	return nil
}

func eachHead(rows pgx.Rows, do func(tenant string, head int64)) error {
	var tenant string
	var head int64
	_, err := pgx.ForEachRow(rows, []any{&tenant, &head}, func() error {
		do(tenant, head)
		return nil
	})
	return err
}
