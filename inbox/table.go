package inbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Querier is what a Table works with; a pool or a connection.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Begin(ctx context.Context) (pgx.Tx, error)
}

// Table is the list of dead messages of one schema. Errors of its methods are
// *workflow.Error: NotFound for a message that is not on the list, InvalidRequest,
// Unavailable, TimedOut.
type Table struct {
	q   Querier
	sql statements
}

// NewTable prepares to work with q. in puts the schema's name into a statement.
func NewTable(q Querier, in func(sql string) string) *Table {
	return &Table{q: q, sql: newStatements(in)}
}

// plannedNow has a statement planned whenever it runs: a plan that was made when
// the table was empty, and kept, would scan it when it is full.
const plannedNow = pgx.QueryExecModeCacheDescribe

// Put writes down a message with its failure and reports whether it is new on the
// list. One that is there already is delivered once more; if it was discarded it
// stays so. A body that is larger than transitions.MaxMessage is not kept.
func (t *Table) Put(ctx context.Context, m transitions.Message, about transitions.About, failure error, at time.Time) (
	fresh bool, err error,
) {
	r, code, text := m.Ref(), workflow.CodeOf(failure), "something failed here that is not the sender's fault"
	if e, ok := errors.AsType[*workflow.Error](failure); ok {
		text = textOf(e)
	}
	size := len(m.Body)
	switch {
	case size > transitions.MaxMessage:
		m.Body = nil
	case m.Body == nil:
		m.Body = []byte{} // not NULL
	}
	err = t.q.QueryRow(ctx, t.sql.put, plannedNow, r.Tenant, r.Consumer, r.ID, r.Hash[:], m.Type, m.Body, string(code), text,
		max(m.Delivery, 1), at, size, about.Workflow, about.BusinessKey, about.Instance).Scan(&fresh)
	return fresh, unavailable("write down a dead message", err)
}

// maxFailure bounds the text of a failure in bytes.
const maxFailure = 4096

// textOf is the text of a failure as it can be stored.
func textOf(e *workflow.Error) string {
	text := strings.ReplaceAll(e.Detail(), "\x00", "\uFFFD")
	return strings.ToValidUTF8(text[:min(len(text), maxFailure)], "\uFFFD")
}

// Done takes a waiting message off the list that was done after all, without an
// operator.
func (t *Table) Done(ctx context.Context, r transitions.MessageRef) error {
	_, err := t.q.Exec(ctx, t.sql.done, plannedNow, r.Tenant, r.Consumer, r.ID, r.Hash[:])
	return unavailable("take a message off the list", err)
}

// Get reads a message with its body.
func (t *Table) Get(ctx context.Context, r transitions.MessageRef) (inspect.DeadMessage, error) {
	rows, err := t.q.Query(ctx, t.sql.get, plannedNow, r.Tenant, r.Consumer, r.ID, r.Hash[:])
	if err != nil {
		return inspect.DeadMessage{}, unavailable("read a dead message", err)
	}
	m, err := pgx.CollectExactlyOneRow(rows, scan)
	if errors.Is(err, pgx.ErrNoRows) {
		return m, workflow.Errorf(workflow.NotFound, "there is no such message on the list")
	}
	return m, unavailable("read a dead message", err)
}

// List reads a page without the bodies, by consumer and then the oldest first, and
// says whether there are more. The filter is complete: it has a tenant, a status
// and a limit.
func (t *Table) List(ctx context.Context, f inspect.DeadMessageFilter) (page []inspect.DeadMessage, more bool, err error) {
	sql, args := t.sql.list, []any{plannedNow, f.Tenant, string(f.Status), f.After.Consumer, f.After.CreatedAt, f.After.ID,
		f.After.Hash[:], f.Limit + 1, f.Workflow, f.BusinessKey}
	if f.Consumer != "" {
		sql, args = t.sql.listOf, append(args, f.Consumer)
	}
	rows, err := t.q.Query(ctx, sql, args...)
	if err != nil {
		return nil, false, unavailable("read dead messages", err)
	}
	page, err = pgx.CollectRows(rows, scan)
	if err != nil {
		return nil, false, unavailable("read dead messages", err)
	}
	if len(page) > f.Limit {
		return page[:f.Limit], true, nil
	}
	return page, false, nil
}

// Reopen lets a message be consumed that was refused or discarded: it deletes the
// refusal that is stored as the answer of its key, or the refusal of a discarded
// message with the same id. An answer of a command that has changed an instance stays.
// An expired answer stays too, unless the list has it as a refusal.
func (t *Table) Reopen(ctx context.Context, m inspect.DeadMessage, at time.Time) error {
	_, err := t.q.Exec(ctx, t.sql.reopen, plannedNow, m.Tenant, m.Consumer, m.ID, m.Hash[:], transitions.InboxScope(m.Consumer),
		m.Code.Info().Final, at)
	return unavailable("withdraw a refusal", err)
}

// Retried notes that a message was done because an operator asked for it.
func (t *Table) Retried(ctx context.Context, r transitions.MessageRef, by, reason string, at time.Time) error {
	_, err := t.q.Exec(ctx, t.sql.retried, plannedNow, r.Tenant, r.Consumer, r.ID, r.Hash[:], by, reason, at)
	return unavailable("note that a message is done", err)
}

// Discard says that a waiting message is never to be done. That is the answer of
// its key from then on, until the answer expires. One that was done elsewhere, as
// its key says, is on the list as retried instead.
func (t *Table) Discard(ctx context.Context, r transitions.MessageRef, by, reason string, at, expires time.Time) error {
	refusal := transitions.ProblemOf(workflow.Errorf(workflow.CommandCancelled, "an operator has discarded the message"))
	scope := transitions.InboxScope(r.Consumer)
	_, err := t.q.Exec(ctx, t.sql.discard, plannedNow, r.Tenant, r.Consumer, r.ID, r.Hash[:], by, reason, at, expires,
		scope, refusal.Status, string(refusal.JSON()))
	if err == nil {
		_, err = t.q.Exec(ctx, t.sql.doneElsewhere, plannedNow, r.Tenant, r.Consumer, r.ID, r.Hash[:], scope)
	}
	return unavailable("discard a message", err)
}

// Forget deletes up to limit messages that do not wait and have not changed since,
// and returns how many.
func (t *Table) Forget(ctx context.Context, before time.Time, limit int) (int64, error) {
	tag, err := t.q.Exec(ctx, t.sql.forget, plannedNow, before, limit)
	return tag.RowsAffected(), unavailable("forget dead messages", err)
}

// Waiting counts the messages of a tenant that wait for an operator, or of everybody
// for "", and tells since when the first one does. It counts up to most.
func (t *Table) Waiting(ctx context.Context, tenant string, most int) (count int64, oldest time.Time, err error) {
	var first *time.Time
	if err = t.q.QueryRow(ctx, t.sql.waiting, plannedNow, tenant, most).Scan(&count, &first); first != nil {
		oldest = first.UTC()
	}
	return count, oldest, unavailable("count dead messages", err)
}

func scan(row pgx.CollectableRow) (m inspect.DeadMessage, err error) {
	var hash []byte
	err = row.Scan(&m.Tenant, &m.Consumer, &m.ID, &hash, &m.Type, &m.Size, &m.Body, &m.Status, &m.Code, &m.Failure, &m.Deliveries,
		&m.CreatedAt, &m.UpdatedAt, &m.ChangedBy, &m.Reason, &m.Workflow, &m.BusinessKey, &m.Instance)
	copy(m.Hash[:], hash)
	m.CreatedAt, m.UpdatedAt = m.CreatedAt.UTC(), m.UpdatedAt.UTC()
	return m, err
}

// unavailable is a failed statement as the caller may see it.
func unavailable(what string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return &workflow.Error{Code: workflow.TimedOut, Message: "the database did not answer in time; try again",
			Cause: fmt.Errorf("%s: %w", what, err)}
	default:
		return &workflow.Error{Code: workflow.Unavailable, Message: "the messages of the inbox could not be reached; try again",
			Cause: fmt.Errorf("%s: %w", what, err)}
	}
}
