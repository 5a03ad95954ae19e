package audit_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/audit/verify"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/kernel/audit"
	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/internal/kernel/rows"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/internal/testkit/tables"
	"github.com/pawlhq/pawl/schema"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func TestMain(m *testing.M) { tables.Main(m) }

const tenant = "acme"

// The instances of a book, in the order of their ids.
var (
	first  = uuid.MustParse("00000000-0000-8000-8000-000000000001")
	second = uuid.MustParse("00000000-0000-8000-8000-000000000002")
	third  = uuid.MustParse("00000000-0000-8000-8000-000000000003")
)

// book is a database with three instances of four transitions each, whose positions take turns: 1 to 12.
type book struct {
	pool    *pgxpool.Pool
	table   *audit.Table
	verify  *verify.Verifier
	entries map[uuid.UUID][]transitions.Entry
}

var same = schema.For(schema.Default)

func newBook(t testing.TB) *book {
	t.Helper()
	b := &book{pool: pgtest.Pool(t), entries: map[uuid.UUID][]transitions.Entry{}}
	b.table, b.verify = audit.New(b.pool, same), verify.New(b.pool, same)
	position := int64(0)
	for version := int64(1); version <= 4; version++ {
		for _, id := range []uuid.UUID{first, second, third} {
			position++
			b.entries[id] = append(b.entries[id], entry(id, version, position))
		}
	}
	b.write(t)
	return b
}

// instance is one of the book at a version. From the third on it keeps an effect.
func instance(id uuid.UUID, version int64) *transitions.Instance {
	i := &transitions.Instance{
		Tenant: tenant, ID: id, Workflow: "order", Definition: 1, State: workflow.State(fmt.Sprint("s", version)), Version: version,
		Data: fmt.Appendf(nil, `{"total":%d}`, version*10), Attributes: map[string]string{"region": "north"},
		Actors: map[string][]string{"move": {"ann"}}, Open: true, CreatedAt: at(1), UpdatedAt: at(version),
	}
	if version > 2 {
		i.Links.Effects = []transitions.Effect{{CommandRef: transitions.CommandRef{Transition: "book", Scope: "s", Key: "k"},
			Payload: []byte(`{}`)}}
	}
	return i
}

const links = `{"effects":[{"transition":"book","scope":"s","key":"k","payload":{}}]}`

func at(version int64) time.Time {
	return time.Date(2026, 1, 2, 3, 4, int(version), 567891000, time.UTC)
}

// entry is the row of a version. That of the second emits an event.
func entry(id uuid.UUID, version, position int64) transitions.Entry {
	i := instance(id, version)
	after, rest := decide.StandingOf(i), decide.Rest(i)
	e := transitions.Entry{
		Tenant: tenant, Instance: id, Version: version, Position: position, Workflow: "order", Transition: "move",
		From: workflow.State(fmt.Sprint("s", version-1)), To: i.State, Actor: "ann", Reason: "because",
		Payload: fmt.Appendf(nil, `{"n":%d, "x": "\u00e9"}`, version), Data: i.Data,
		Scope: "order:" + id.String(), Key: fmt.Sprint("k-", version), At: at(version), After: after.Digest(),
	}
	if version == 1 {
		e.From, e.Reason = "", ""
	} else {
		before := decide.StandingOf(instance(id, version-1))
		e.Before = before.Digest()
	}
	if version == 2 {
		e.Cause = transitions.CausedByOperator
		e.Emitted = decide.EmittedDigest([]transitions.Event{{}, {Type: "noted", Payload: []byte(`{"v": 2}`)}})
	}
	if version == 1 || version == 3 {
		e.Rest = rest[:]
	}
	return e
}

// read are the entries of an instance as they are read: without what only enters the hash.
func (b *book) read(id uuid.UUID) (list []transitions.Entry) {
	for _, e := range b.entries[id] {
		e.Before, e.After, e.Rest, e.Emitted = [32]byte{}, [32]byte{}, nil, nil
		list = append(list, e)
	}
	return list
}

// write links the chains and inserts everything.
func (b *book) write(t testing.TB) {
	t.Helper()
	conn, err := b.pool.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	set := rows.NewSet(audit.Columns)
	for id, entries := range b.entries {
		set.Reset()
		var prev [32]byte
		for i := range entries {
			e := &entries[i]
			e.Hash = audit.Link(prev, e)
			prev = e.Hash
			audit.Add(set, e)
		}
		builder := rows.For(rows.OneTenant)
		audit.Insert(builder, "h.base + 3 * u.ord", "(SELECT "+fmt.Sprint(entries[0].Position-3)+" AS base) AS h")
		stmt := builder.Statement()
		stmt.SQL = same(stmt.SQL)
		c := rows.NewUnnamedConn(conn.Conn().PgConn())
		c.Queue(&stmt, append([][]byte{[]byte(tenant)}, set.Params(rows.OneTenant)...), nil)
		require.NoError(t, c.Send(t.Context()))
		b.exec(t, `INSERT INTO pawl.instance (tenant, id, workflow, definition, state, version, data, attributes, actors, links, open, chain,
			created_at, updated_at)
			VALUES ($1, $2, 'order', 1, 's4', 4, '{"total":40}', '{"region":"north"}', '{"move":["ann"]}', $3::text::json, true, $4, $5, $6)`,
			tenant, id, links, prev[:], at(1), at(4))
	}
	b.exec(t, "SELECT pawl.make_partition('outbox', $1)", at(1))
	b.exec(t, `INSERT INTO pawl.outbox (tenant, position, type, ordinal, workflow, instance, version, transition, state, at, attributes,
		payload)
		SELECT tenant, position, e.type, e.ordinal, workflow, instance, version, transition, to_state, at, '{"region":"north"}',
			CASE e.ordinal WHEN 1 THEN '{"v": 2}'::json END
		FROM pawl.audit, (VALUES ('order.move', 0), ('noted', 1)) AS e(type, ordinal) WHERE e.ordinal = 0 OR version = 2`)
	b.exec(t, `INSERT INTO pawl.log (tenant, head) VALUES ($1, 12)`, tenant)
}

func (b *book) exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	_, err := b.pool.Exec(t.Context(), sql, args...)
	require.NoError(t, err, sql)
}

// verifyAfter says what is found while a transaction that tampers is open, and undoes it. The statements may hold several.
func (b *book) verifyAfter(t testing.TB, id uuid.UUID, tamper string) inspect.Verification {
	t.Helper()
	tx, err := b.pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() {
		assert.NoError(t, tx.Rollback(t.Context()))
	}()
	_, err = tx.Exec(t.Context(), tamper)
	require.NoError(t, err, tamper)
	v, err := verify.New(tx, same).Verify(t.Context(), tenant, id, nil)
	require.NoError(t, err, tamper)
	return v
}
