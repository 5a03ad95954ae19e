package outbox_test

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/kernel/outbox"
	"github.com/pawlhq/pawl/internal/kernel/rows"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/internal/testkit/tables"
	"github.com/pawlhq/pawl/schema"
	"github.com/pawlhq/pawl/transitions"
)

func TestMain(m *testing.M) { tables.Main(m) }

const tenant = "acme"

var same = schema.For(schema.Default)

func migrated(t testing.TB) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(pgtest.URL(t))
	require.NoError(t, err)
	config.MaxConns = 12
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// event is the ordinal-th event of the transition at a position. Some have everything that an event can have, some only what each has.
func event(position int64, ordinal int) transitions.Event {
	e := transitions.Event{
		Tenant: tenant, Position: position, Ordinal: ordinal, Type: fmt.Sprintf("order.%c", 'z'-rune(ordinal)), Workflow: "order",
		Instance: uuid.MustParse("00000000-0000-8000-8000-000000000001"), Version: position, Transition: "move", State: "s",
		Actor: "ann", Scope: "order", Key: fmt.Sprint(position), Cause: transitions.CausedByCaller,
		At: time.Date(2026, 1, 2, 3, 4, 5, 567891000, time.UTC), Payload: fmt.Appendf(nil, `{"n": %d}`, ordinal),
	}
	if position > 1 {
		e.From = "r"
	}
	switch position % 3 {
	case 1:
		e.BusinessKey, e.Attributes, e.Reason = "k-1", map[string]string{"to": "Zoë", "x": ""}, "so\nit is"
		e.Scope, e.Cause, e.CausedBy = "inbox:bank", transitions.CausedByMessage, "bank"
	case 2:
		e.Cause = transitions.CausedByOperator
	}
	return e
}

// publish inserts the events of the transitions at positions 1, 2, …, as many
// as counts says, with their audit rows, through the columns and the statement that the pipeline uses.
func publish(t testing.TB, pool *pgxpool.Pool, counts ...int) (all []transitions.Event) {
	t.Helper()
	conn, err := pool.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	_, err = conn.Exec(t.Context(), "SELECT pawl.make_partition('outbox', $1)", event(1, 0).At)
	require.NoError(t, err)
	set := rows.NewSet(outbox.Columns)
	for i, n := range counts {
		for ordinal := range n {
			e := event(int64(i+1), ordinal)
			all = append(all, e)
			require.NoError(t, outbox.Add(set, i+1, &e))
		}
		e := event(int64(i+1), 0)
		if _, err := conn.Exec(t.Context(), `INSERT INTO pawl.audit (tenant, instance, version, position, workflow, transition, from_state,
				to_state, actor, reason, payload, data, scope, key, at, hash, cause)
			VALUES ($1, $2, $3, $4, $5, $6, nullif($7, ''), $8, $9, nullif($10, ''), '{}', $11, $12, $13, $14, sha256('x'),
				CASE $15::text WHEN 'operator' THEN $15 END)`,
			tenant, e.Instance, e.Version, e.Position, e.Workflow, e.Transition, e.From, e.State, e.Actor, e.Reason, string(e.Payload), e.Scope,
			e.Key, e.At, e.Cause); err != nil {
			t.Fatal(err)
		}
	}
	insert, advance := rows.For(rows.OneTenant), rows.For(rows.OneTenant)
	outbox.Advance(advance, "")
	outbox.Insert(insert, "u.step", "(SELECT 1) AS once")
	insertStmt, advanceStmt := insert.Statement(), advance.Statement()
	insertStmt.SQL, advanceStmt.SQL = same(insertStmt.SQL), same(advanceStmt.SQL)
	c := rows.NewUnnamedConn(conn.Conn().PgConn())
	c.Queue(&advanceStmt, [][]byte{[]byte(tenant), {0, 0, 0, 0, 0, 0, 0, byte(len(counts))}}, nil)
	c.Queue(&insertStmt, append([][]byte{[]byte(tenant)}, set.Params(rows.OneTenant)...), nil)
	require.NoError(t, c.Send(t.Context()))
	return all
}

func TestAfterReturnsWhatWasAddedInOrder(t *testing.T) {
	t.Parallel()
	pool := migrated(t)
	table := outbox.New(pool, same, "")
	want := publish(t, pool, 1, 3, 2, 1)
	got, err := table.After(t.Context(), tenant, 0, 100)
	assert.Truef(t, err == nil && reflect.DeepEqual(got, want), "got %+v, %v\nwant %+v", got, err, want)
	if got, err := table.After(t.Context(), "other", 0, 100); err != nil || len(got) != 0 {
		t.Errorf("another tenant: got %+v, %v", got, err)
	}
}

// Erasing the audit row erases the payload in the log: it has no copy.
func TestAnErasedPayloadIsNotThere(t *testing.T) {
	t.Parallel()
	pool := migrated(t)
	publish(t, pool, 3)
	for _, sql := range []string{`UPDATE pawl.audit SET data = NULL, data_digest = sha256('x')`,
		`UPDATE pawl.outbox SET payload = NULL WHERE ordinal = 2`} {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	got, err := outbox.New(pool, same, "").After(t.Context(), tenant, 0, 100)
	assert.Truef(t, err == nil && len(got) == 3 && got[0].Payload == nil && string(got[1].Payload) == `{"n": 1}` &&
		got[2].Payload == nil && got[2].Actor == "ann",
		"got %+v, %v", got, err)
}

func TestAfterNeverSplitsTheEventsOfATransition(t *testing.T) {
	t.Parallel()
	pool := migrated(t)
	table := outbox.New(pool, same, "")
	counts := []int{3, 1, 4, 1, 5, 2}
	want := publish(t, pool, counts...)
	for limit := 1; limit <= len(counts)+1; limit++ {
		for start := range len(counts) + 1 {
			var all []transitions.Event
			for after := int64(start); ; {
				batch, err := table.After(t.Context(), tenant, after, limit)
				require.NoError(t, err)
				if len(batch) == 0 {
					break
				}
				seen := map[int64]int{}
				for _, e := range batch {
					seen[e.Position]++
				}
				require.Truef(t, len(seen) <= limit, "limit %d: %d transitions", limit, len(seen))
				for position, n := range seen {
					require.Equalf(t, counts[position-1], n, "limit %d of events of position %d", limit, position)
				}
				all = append(all, batch...)
				after = batch[len(batch)-1].Position
			}
			rest := slices.DeleteFunc(slices.Clone(want), func(e transitions.Event) bool { return e.Position <= int64(start) })
			assert.Truef(t, len(all) == len(rest) && (len(rest) == 0 || reflect.DeepEqual(all, rest)),
				"limit %d from %d: got %d events of %d", limit, start, len(all), len(rest))
		}
	}
}

func TestACursorPastEverythingFindsNothing(t *testing.T) {
	t.Parallel()
	pool := migrated(t)
	table := outbox.New(pool, same, "")
	publish(t, pool, 1)
	for _, position := range []int64{1, 2, math.MaxInt64 - 1, math.MaxInt64} {
		got, err := table.After(t.Context(), tenant, position, 100)
		assert.Truef(t, err == nil && len(got) == 0, "after %d: got %+v, %v", position, got, err)
	}
	_, err := pool.Exec(t.Context(), "UPDATE pawl.outbox SET position = $1", int64(math.MaxInt64))
	require.NoError(t, err)
	got, err := table.After(t.Context(), tenant, math.MaxInt64-1, 100)
	assert.Truef(t, err == nil && len(got) == 1, "the last position of all: got %+v, %v", got, err)
}

func TestHeadsOfManyLogs(t *testing.T) {
	t.Parallel()
	pool := migrated(t)
	table := outbox.New(pool, same, "")
	if head, err := table.Head(t.Context(), tenant); err != nil || head != 0 {
		t.Errorf("an empty log: got %d, %v", head, err)
	}
	publish(t, pool, 1, 1, 1)
	if _, err := pool.Exec(t.Context(), "INSERT INTO pawl.log VALUES ('b', 7)"); err != nil {
		t.Fatal(err)
	}
	if head, err := table.Head(t.Context(), tenant); err != nil || head != 3 {
		t.Errorf("got %d, %v", head, err)
	}
	got, err := table.Heads(t.Context(), []string{"b", "nobody", tenant})
	want := map[string]int64{tenant: 3, "b": 7}
	assert.Truef(t, err == nil && reflect.DeepEqual(got, want), "got %v, %v, want %v", got, err, want)
}

func TestOneEventPerTypeAndTransition(t *testing.T) {
	t.Parallel()
	pool := migrated(t)
	publish(t, pool, 1)
	_, err := pool.Exec(t.Context(), `INSERT INTO pawl.outbox (tenant, position, type, ordinal, workflow, instance, version, transition,
		state, at) SELECT tenant, position, type, 1, workflow, instance, version, transition,
		state, at
		FROM pawl.outbox`)
	assert.ErrorContains(t, err, "outbox_2026w01_pkey")
}

func TestErrorsAreTheDatabases(t *testing.T) {
	t.Parallel()
	pool := migrated(t)
	table := outbox.New(pool, same, "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, afterErr := table.After(ctx, tenant, 0, 1)
	_, headErr := table.Head(ctx, tenant)
	_, headsErr := table.Heads(ctx, nil)
	for _, err := range []error{afterErr, headErr, headsErr} {
		assert.ErrorContains(t, err, "read log")
	}
}
