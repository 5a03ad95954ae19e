package inbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/kernel/store"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Table is the list of dead messages of one schema. Its methods return *workflow.Error: NotFound
// for a message that is not on the list, InvalidRequest, Unavailable, TimedOut.
type Table struct {
	q  store.Querier
	in func(sql string) string
}

// NewTable returns a table. in inserts the schema's name into a statement.
func NewTable(q store.Querier, in func(sql string) string) *Table { return &Table{q, in} }

// plannedNow replans a statement each time: a plan cached for an empty table would scan it when it
// is full.
const plannedNow = pgx.QueryExecModeCacheDescribe

// Put stores a message with its failure and reports whether it is new on the list. For an existing
// message it counts the delivery; a discarded one stays discarded. Bodies larger than
// transitions.MaxMessage are not stored.
func (t *Table) Put(ctx context.Context, m transitions.Message, about transitions.About, failure error, at time.Time) (
	fresh bool, err error,
) {
	r, code, text := m.Ref(), workflow.CodeOf(failure), "internal error"
	if e, ok := errors.AsType[*workflow.Error](failure); ok {
		text = strings.ReplaceAll(e.Detail(), "\x00", "\uFFFD")
		text = strings.ToValidUTF8(text[:min(len(text), maxFailure)], "\uFFFD")
	}
	size := len(m.Body)
	switch {
	case size > transitions.MaxMessage:
		m.Body = nil
	case m.Body == nil:
		m.Body = []byte{} // not NULL
	}
	err = t.q.QueryRow(ctx, t.in(putSQL), plannedNow, r.Tenant, r.Consumer, r.ID, r.Hash[:], m.Type, m.Body, string(code), text,
		max(m.Delivery, 1), at, size, about.Workflow, about.BusinessKey, about.Instance).Scan(&fresh)
	return fresh, unavailable("store a dead message", err)
}

const maxFailure = 4096

// Done removes a waiting message that was consumed without an operator.
func (t *Table) Done(ctx context.Context, r transitions.MessageRef) error {
	_, err := t.q.Exec(ctx, t.in(doneSQL), plannedNow, r.Tenant, r.Consumer, r.ID, r.Hash[:])
	return unavailable("remove a dead message", err)
}

// Get returns a message with its body.
func (t *Table) Get(ctx context.Context, r transitions.MessageRef) (inspect.DeadMessage, error) {
	rows, _ := t.q.Query(ctx, t.in(getSQL), plannedNow, r.Tenant, r.Consumer, r.ID, r.Hash[:])
	m, err := pgx.CollectExactlyOneRow(rows, scan)
	if errors.Is(err, pgx.ErrNoRows) {
		return m, workflow.Errorf(workflow.NotFound, "no such dead message")
	}
	return m, unavailable("read a dead message", err)
}

// List returns a page without bodies, by consumer and then oldest first, and reports whether there
// are more. The filter must have a tenant, a status and a limit.
func (t *Table) List(ctx context.Context, f inspect.DeadMessageFilter) (page []inspect.DeadMessage, more bool, err error) {
	sql, args := listSQL, []any{plannedNow, f.Tenant, string(f.Status), f.After.Consumer, f.After.CreatedAt, f.After.ID,
		f.After.Hash[:], f.Limit + 1, f.Workflow, f.BusinessKey}
	if f.Consumer != "" {
		sql, args = listOfSQL, append(args, f.Consumer)
	}
	rows, _ := t.q.Query(ctx, t.in(sql), args...) // CollectRows returns its error
	page, err = pgx.CollectRows(rows, scan)
	return page[:min(len(page), f.Limit)], len(page) > f.Limit, unavailable("read dead messages", err)
}

// Reopen allows a refused or discarded message to be consumed. It deletes the refusal stored as the
// result of its key, or the refusal of a discarded message with the same id. Results of commands
// that changed an instance are kept, and so are expired results unless the list has them as
// refusals.
func (t *Table) Reopen(ctx context.Context, m inspect.DeadMessage, at time.Time) error {
	_, err := t.q.Exec(ctx, t.in(reopenSQL), plannedNow, m.Tenant, m.Consumer, m.ID, m.Hash[:], transitions.InboxScope(m.Consumer),
		m.Code.Info().Final, at)
	return unavailable("reopen a dead message", err)
}

// Retried records that a message was consumed for an operator.
func (t *Table) Retried(ctx context.Context, r transitions.MessageRef, by, reason string, at time.Time) error {
	_, err := t.q.Exec(ctx, t.in(retriedSQL), plannedNow, r.Tenant, r.Consumer, r.ID, r.Hash[:], by, reason, at)
	return unavailable("mark a dead message as retried", err)
}

// Discard discards a waiting message permanently: until its expiry, the result of its key is a
// refusal. If the message was consumed elsewhere according to its key, it is marked as retried
// instead.
func (t *Table) Discard(ctx context.Context, r transitions.MessageRef, by, reason string, at, expires time.Time) error {
	refusal := transitions.ProblemOf(workflow.Errorf(workflow.CommandCancelled, "an operator has discarded the message"))
	scope := transitions.InboxScope(r.Consumer)
	_, err := t.q.Exec(ctx, t.in(discardSQL), plannedNow, r.Tenant, r.Consumer, r.ID, r.Hash[:], by, reason, at, expires,
		scope, refusal.Status, string(refusal.JSON()))
	if err == nil {
		_, err = t.q.Exec(ctx, t.in(doneElsewhereSQL), plannedNow, r.Tenant, r.Consumer, r.ID, r.Hash[:], scope)
	}
	return unavailable("discard a message", err)
}

// Forget deletes up to limit messages that are not waiting and have not changed since before, and
// returns their number.
func (t *Table) Forget(ctx context.Context, before time.Time, limit int) (int64, error) {
	tag, err := t.q.Exec(ctx, t.in(forgetSQL), plannedNow, before, limit)
	return tag.RowsAffected(), unavailable("delete dead messages", err)
}

// Waiting counts the waiting messages of a tenant, or of all for "", up to most, and returns the
// time of the oldest.
func (t *Table) Waiting(ctx context.Context, tenant string, most int) (count int64, oldest time.Time, err error) {
	var first *time.Time
	if err = t.q.QueryRow(ctx, t.in(waitingSQL), plannedNow, tenant, most).Scan(&count, &first); first != nil {
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

func unavailable(what string, err error) error {
	if err == nil {
		return nil
	}
	e := &workflow.Error{Code: workflow.Unavailable, Message: "cannot access the messages of the inbox; try again",
		Cause: fmt.Errorf("%s: %w", what, err)}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		e.Code, e.Message = workflow.TimedOut, "the database did not answer in time; try again"
	}
	return e
}
