package outbox

import (
	"context"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/internal/kernel/audit"
	"github.com/pawlhq/pawl/internal/kernel/rows"
	"github.com/pawlhq/pawl/transitions"
)

// Table reads the log of one schema.
type Table struct {
	q      rows.Querier
	in     func(sql string) string
	source string
}

// New returns a Table that reads with q. in inserts the schema's name into a statement. source is that of the events, see
// [transitions.Event].
func New(q rows.Querier, in func(sql string) string, source string) *Table {
	return &Table{q, in, source}
}

// In inserts the name of the table's schema into a statement.
func (t *Table) In(sql string) string { return t.in(sql) }

// Source returns the source of the events.
func (t *Table) Source() string { return t.source }

// The limit counts positions, so that a batch never ends between two events of a transition.
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

// Scan reads a row of columns followed by Details.
func Scan(row pgx.CollectableRow, e *transitions.Event, columns ...any) error {
	err := row.Scan(append(columns, &e.Workflow, &e.Version, &e.Transition, &e.State, &e.BusinessKey, &e.Attributes, &e.Cause, &e.From,
		&e.Actor, &e.Reason, &e.Scope, &e.Key, &e.Payload, &e.Trace)...)
	e.Cause, e.CausedBy = transitions.CauseOf(e.Cause, e.Scope, e.Key)
	return err
}

// settings keep a statement to index probes, even with a plan for empty tables, and prevent JIT. They end with the message.
const settings = `SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
	set_config('plan_cache_mode', 'force_generic_plan', true), set_config('jit', 'off', true)`

// After returns the events of up to limit transitions after a position, in order. It ends early, after a whole transition, at
// [transitions.PageBytes].
func (t *Table) After(ctx context.Context, tenant string, position int64, limit int) ([]transitions.Event, error) {
	to := position + int64(limit)
	if to < position {
		to = math.MaxInt64
	}
	var events []transitions.Event
	var b pgx.Batch
	b.Queue(settings)
	b.Queue(t.in(afterSQL), tenant, position, to).Query(func(rows pgx.Rows) error {
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

// firstSQL returns the first existing position after another, or the one after the head. Parameters: tenant, position.
var firstSQL = "SELECT coalesce((" + FirstAfter("position", "$1", "$2", "true") + "), " + HeadOf("$1") + " + 1)"

// First returns the first position after another whose events exist, or the one after the head. If it is not the next position, retention
// has removed those before it.
func (t *Table) First(ctx context.Context, tenant string, after int64) (int64, error) {
	return t.number(ctx, firstSQL, tenant, after)
}

// Head returns the position of the tenant's newest transition, 0 for an empty log.
func (t *Table) Head(ctx context.Context, tenant string) (int64, error) {
	return t.number(ctx, "SELECT "+HeadOf("$1"), tenant)
}

func (t *Table) number(ctx context.Context, sql string, args ...any) (n int64, err error) {
	if err := t.q.QueryRow(ctx, t.in(sql), args...).Scan(&n); err != nil {
		return 0, fmt.Errorf("read log: %w", err)
	}
	return n, nil
}

var headsSQL = `SELECT u.tenant, l.head FROM unnest($1::text[]) AS u(tenant)` + JoinHead("u.tenant")

// Heads returns the heads of several tenants' logs, without empty logs.
func (t *Table) Heads(ctx context.Context, tenants []string) (map[string]int64, error) {
	heads := make(map[string]int64, len(tenants))
	var b pgx.Batch
	b.Queue(settings)
	b.Queue(t.in(headsSQL), tenants).Query(func(rows pgx.Rows) error {
		return eachHead(rows, func(tenant string, head int64) { heads[tenant] = head })
	})
	if err := t.q.SendBatch(ctx, &b).Close(); err != nil {
		return nil, fmt.Errorf("read log heads: %w", err)
	}
	return heads, nil
}

// EachHead calls do with the head of each tenant's log.
func (t *Table) EachHead(ctx context.Context, do func(tenant string, head int64)) error {
	rows, _ := t.q.Query(ctx, t.in("SELECT tenant, head FROM "+Logs)) // eachHead returns its error
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
