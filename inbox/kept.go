package inbox

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// The statements about kept messages. Reads skip messages that are expired at $2.
const (
	// An expired row that retention has not deleted yet is replaced.
	keepSQL = `INSERT INTO {pawl}.inbox_kept AS k (tenant, consumer, message, hash, received_at, keep_until, headers, body)
		SELECT $1, $2, $3, $4, $5, $6, $7, $8 FROM {pawl}.durable()
		ON CONFLICT (tenant, consumer, message, hash) DO UPDATE SET received_at = excluded.received_at, keep_until = excluded.keep_until,
			headers = excluded.headers
		WHERE k.keep_until <= excluded.received_at`

	keptKey   = `SELECT tenant, consumer, message, hash, `
	keptSizes = `octet_length(body) AS size, received_at, keep_until`

	getKeptSQL = keptKey + keptSizes + `, headers, body FROM {pawl}.inbox_kept
		WHERE tenant = $1 AND keep_until > $2 AND consumer = $3 AND message = $4 AND hash = $5`

	keptAfter     = ` (consumer, received_at, message, hash) > ($3, $4, $5, $6)`
	endOfKept     = ` ORDER BY consumer, received_at, message, hash LIMIT $7`
	selectKept    = keptKey + keptSizes + `, ''::bytea, ''::bytea FROM {pawl}.inbox_kept WHERE tenant = $1 AND keep_until > $2 AND` + keptAfter
	listKeptSQL   = selectKept + endOfKept
	listKeptOfSQL = selectKept + ` AND consumer = $8` + endOfKept

	// Few messages share an id. The inner query has the order of the primary key, so the planner uses that index; the index of the lists
	// would be read for all messages of the consumer.
	listKeptWithSQL = `WITH few AS MATERIALIZED (` + keptKey + keptSizes + ` FROM {pawl}.inbox_kept
			WHERE tenant = $1 AND keep_until > $2 AND consumer = $8 AND message = $9 ORDER BY hash)
		` + keptKey + `size, received_at, keep_until, ''::bytea, ''::bytea FROM few WHERE` + keptAfter + endOfKept

	forgetKeptSQL = `DELETE FROM {pawl}.inbox_kept WHERE ctid = ANY (ARRAY(SELECT k.ctid FROM {pawl}.inbox_kept AS k
		WHERE k.keep_until <= $1 ORDER BY k.keep_until LIMIT $2 FOR UPDATE SKIP LOCKED))`
)

// inOrder makes the planner read a list from an index in order, also while its statistics are those of an empty table.
const inOrder = `SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off; SET LOCAL enable_incremental_sort = off;
	SET LOCAL enable_bitmapscan = off; SET LOCAL jit = off`

// maxHeaders bounds the headers that are kept of a message in bytes. The server's limit for HTTP is lower by default.
const maxHeaders = 256 << 10

// Keep stores a message as it was received until m.Keep after a time. Of several deliveries it keeps the first.
func (t *Table) Keep(ctx context.Context, m transitions.Message, at time.Time) error {
	r, body := m.Ref(), m.Body
	if body == nil {
		body = []byte{} // not NULL
	}
	_, err := t.q.Exec(ctx, t.in(keepSQL), plannedNow, r.Tenant, r.Consumer, r.ID, r.Hash[:], at, at.Add(m.Keep), linesOf(m.Headers), body)
	return unavailable("keep a message", err)
}

// Kept reads a message that is not expired at a time.
func (t *Table) Kept(ctx context.Context, r transitions.MessageRef, at time.Time) (inspect.KeptMessage, error) {
	rows, _ := t.q.Query(ctx, t.in(getKeptSQL), plannedNow, r.Tenant, at, r.Consumer, r.ID, r.Hash[:])
	m, err := pgx.CollectExactlyOneRow(rows, scanKept)
	if errors.Is(err, pgx.ErrNoRows) {
		return m, workflow.Errorf(workflow.NotFound, "no such message is kept")
	}
	return m, unavailable("read a kept message", err)
}

// ListKept reads a page of messages that are not expired at a time, without headers and bodies, ordered by consumer and time of receipt. It
// reports whether there are more. The filter must have a tenant and a limit.
func (t *Table) ListKept(ctx context.Context, f inspect.KeptMessageFilter, at time.Time) (
	page []inspect.KeptMessage, more bool, err error,
) {
	after := &f.After
	sql, args := listKeptSQL, []any{plannedNow, f.Tenant, at, after.Consumer, after.ReceivedAt, after.ID, after.Hash[:], f.Limit + 1}
	switch {
	case f.ID != "":
		sql, args = listKeptWithSQL, append(args, f.Consumer, f.ID)
	case f.Consumer != "":
		sql, args = listKeptOfSQL, append(args, f.Consumer)
	}
	err = pgx.BeginFunc(ctx, t.q, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, inOrder, pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
		rows, _ := tx.Query(ctx, t.in(sql), args...) // CollectRows returns its error
		page, err = pgx.CollectRows(rows, scanKept)
		return err
	})
	for i := range page {
		page[i].Headers, page[i].Body = nil, nil
	}
	return page[:min(len(page), f.Limit)], len(page) > f.Limit, unavailable("read kept messages", err)
}

// ForgetKept deletes up to limit expired messages and returns their number.
func (t *Table) ForgetKept(ctx context.Context, at time.Time, limit int) (int64, error) {
	tag, err := t.q.Exec(ctx, t.in(forgetKeptSQL), plannedNow, at, limit)
	return tag.RowsAffected(), unavailable("forget kept messages", err)
}

func scanKept(row pgx.CollectableRow) (m inspect.KeptMessage, err error) {
	var hash, lines []byte
	err = row.Scan(&m.Tenant, &m.Consumer, &m.ID, &hash, &m.Size, &m.ReceivedAt, &m.KeepUntil, &lines, &m.Body)
	copy(m.Hash[:], hash)
	m.ReceivedAt, m.KeepUntil, m.Headers = m.ReceivedAt.UTC(), m.KeepUntil.UTC(), headersOf(lines)
	return m, err
}

// linesOf writes headers as lines, by name, up to maxHeaders. It replaces line breaks by spaces.
func linesOf(headers map[string][]string) []byte {
	lines := []byte{}
	breaks := strings.NewReplacer("\r", " ", "\n", " ")
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		for _, value := range headers[name] {
			if len(lines)+len(name)+len(value)+len(": \n") <= maxHeaders {
				lines = append(lines, breaks.Replace(name)+": "+breaks.Replace(value)+"\n"...)
			}
		}
	}
	return lines
}

func headersOf(lines []byte) map[string][]string {
	headers := map[string][]string{}
	for line := range bytes.Lines(lines) {
		name, value, _ := strings.Cut(strings.TrimSuffix(string(line), "\n"), ": ")
		headers[name] = append(headers[name], value)
	}
	return headers
}
