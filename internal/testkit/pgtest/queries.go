package pgtest

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
)

// Queries records the statements of the connections whose Tracer it is, one by one or in a batch. Statements that are not sent by pgx's own
// methods, such as those of pgconn, are missing.
type Queries struct {
	mu   sync.Mutex
	list []string
}

// List returns the text of all queries so far, in the order in which they were begun.
func (q *Queries) List() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.list)
}

// Count returns how many queries so far contain the fragment, which all do for "".
func (q *Queries) Count(fragment string) (n int) {
	for _, sql := range q.List() {
		if strings.Contains(sql, fragment) {
			n++
		}
	}
	return n
}

func (q *Queries) add(sql string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.list = append(q.list, sql)
}

// TraceQueryStart implements [pgx.QueryTracer].
func (q *Queries) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	q.add(d.SQL)
	return ctx
}

// TraceQueryEnd implements [pgx.QueryTracer].
func (q *Queries) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TraceBatchStart implements [pgx.BatchTracer].
func (q *Queries) TraceBatchStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceBatchStartData) context.Context {
	for _, one := range d.Batch.QueuedQueries {
		q.add(one.SQL)
	}
	return ctx
}

// TraceBatchQuery implements [pgx.BatchTracer].
func (q *Queries) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd implements [pgx.BatchTracer].
func (q *Queries) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}
