package schema_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func wantCode(t testing.TB, err error, code workflow.Code) {
	t.Helper()
	assert.Equal(t, code, workflow.CodeOf(err), err)
}

func TestEngineReplaysSQLResult(t *testing.T) {
	t.Parallel()
	pool, e := served(t)
	body := ask[string](t, pool, placeInSQL, "checkout", payloadOf("k-1"), "k-1")
	r, err := e.Submit(t.Context(), place("checkout", "k-1"))
	require.Truef(t, err == nil && r.Replayed && r.Status == 201 && r.Version == 1 && r.Position == 1 && r.Instance == idOf("k-1"),
		"got %+v, %v", r, err)
	assert.Equalf(t, string(transitions.WithPosition([]byte(body), 1)), string(r.Body), "the engine answers %s", r.Body)
	result, err := r.Result()
	assert.Truef(t, err == nil && result.State == placed && result.Version == 1 && time.Since(result.At) <= time.Minute,
		"got %+v, %v", result, err)
	// The SQL caller gets the same bytes for its own command.
	again, err := claimAs(t.Context(), pool, "'order:place', 'checkout', pawl.fingerprint('order', 'place', $1::jsonb)", payloadOf("k-1"))
	assert.Truef(t, err == nil && again.Outcome == "replay" && *again.Code == 201 && *again.Body == string(r.Body), "got %v, %v", again, err)
	wantCode(t, errOf(e.Submit(t.Context(), place("checkout", "k-2"))), workflow.KeyReused)
}

func TestEngineReplaysSQLRefusal(t *testing.T) {
	t.Parallel()
	pool, e := served(t)
	exec(t, pool, `SELECT pawl.fail('order:place', 'checkout', c.attempt, 'only 3 "left"', final => true)
		FROM pawl.claim('order:place', 'checkout', pawl.fingerprint('order', 'place', $1::jsonb), 'order', 'place') AS c`, payloadOf("k-1"))
	r, err := e.Submit(t.Context(), place("checkout", "k-1"))
	require.Truef(t, err == nil && r.Status == 409 && r.Replayed && r.Refused(), "got %+v, %v", r, err)
	refusal, ok := errors.AsType[*workflow.Error](r.Err())
	assert.Truef(t, ok && refusal.Code == workflow.GuardRefused && refusal.Message == `only 3 "left"`, "got %v", r.Err())
	// As the engine itself would refuse it.
	want := transitions.ProblemOf(refusal).JSON()
	assert.Equalf(t, string(r.Body), string(want), "got %s\nwant %s", r.Body, want)
}

func TestSQLReplaysEngineResult(t *testing.T) {
	t.Parallel()
	pool, e := served(t)
	r, err := e.Submit(t.Context(), place("checkout", "k-1"))
	require.NoError(t, err)
	const args = "'order:place', 'checkout', pawl.fingerprint('order', 'place', $1::jsonb)"
	got, err := claimAs(t.Context(), pool, args, payloadOf("k-1"))
	assert.Truef(t, err == nil && got.Outcome == "replay" && *got.Code == 201 && *got.Body == string(r.Body),
		"got %v, %v; want %s", got, err, r.Body)
	raised(t, errOf(claimAs(t.Context(), pool, args, payloadOf("k-2"))), "P4002")

	refusal, err := e.Submit(t.Context(), transitions.Command{Workflow: "order", Instance: idOf("k-1"), Transition: "giveup", Key: "g"})
	require.Truef(t, err == nil && refusal.Refused(), "got %+v, %v", refusal, err)
	_, err = claimAs(t.Context(), pool, "$1, 'g', pawl.fingerprint('order', 'giveup', instance => $2)",
		transitions.DefaultScope("order", "", idOf("k-1")), idOf("k-1"))
	if e := raised(t, err, "P4030"); e.Detail != string(refusal.Body) {
		t.Errorf("got %s, want %s", e.Detail, refusal.Body)
	}
}

func TestSQLCannotClaimEngineCommands(t *testing.T) {
	t.Parallel()
	pool, e := served(t)
	require.NoError(t, errOf(e.Submit(t.Context(), place("checkout", "k-1"))))
	later := place("later", "k-2")
	later.NotBefore = time.Now().Add(time.Hour)
	for _, c := range []transitions.Command{later, {Workflow: "order", Instance: idOf("k-1"), Transition: "pay", Key: "later"}} {
		r, err := e.Submit(t.Context(), c)
		require.Truef(t, err == nil && r.InFlight(), "got %+v, %v", r, err)
		before := ask[string](t, pool, "SELECT c::text FROM pawl.command c WHERE scope = $1 AND key = 'later'", r.Record.Scope)
		raised(t, errOf(claimAs(t.Context(), pool, "$1, 'later', $2", r.Record.Scope, r.Record.Fingerprint[:])), "P4029")
		refused(t, pool, "P4010", "SELECT pawl.succeed($1, 'later', $2)", r.Record.Scope, r.Record.Attempt)
		refused(t, pool, "P4011", "SELECT pawl.fail($1, 'later', $2, 'x')", r.Record.Scope, r.Record.Attempt)
		after := ask[string](t, pool, "SELECT c::text FROM pawl.command c WHERE scope = $1 AND key = 'later'", r.Record.Scope)
		assert.Equal(t, before, after, "it became, and")
	}
}

// The engine's workers ignore commands that SQL callers hold or have released, even if due or expired.
func TestEngineIgnoresSQLCommands(t *testing.T) {
	t.Parallel()
	pool, e := served(t)
	exec(t, pool, `SELECT pawl.claim('s', 'lapsed', sha256('x'), 'order', 'pay', lease => '1 microsecond');
		SELECT pawl.claim('s', 'given back', sha256('x'), 'order', 'pay'); SELECT pawl.fail('s', 'given back', 1, 'later')`)
	const rows = "SELECT string_agg(c::text, '; ' ORDER BY key) FROM pawl.command c WHERE scope = 's'"
	before := ask[string](t, pool, rows)
	looks := e.Admin().InFlightStats().Polls
	await.Eventually(t, "a poll that has begun since ends", func() bool { return e.Admin().InFlightStats().Polls >= looks+2 })
	assert.Equal(t, before, ask[string](t, pool, rows), "they became, and")
	for _, key := range []string{"lapsed", "given back"} {
		record, err := e.Read().Command(t.Context(), transitions.Ref{Scope: "s", Key: key})
		assert.Truef(t, err == nil && record.InFlight() && record.Instance == uuid.Nil, "got %+v, %v", record, err)
		_, err = e.Cancel(t.Context(), transitions.Ref{Scope: "s", Key: key}, "ann")
		assert.Equalf(t, workflow.InProgress, workflow.CodeOf(err), "cancelling it: %v", err)
	}
	assert.Equal(t, before, ask[string](t, pool, rows), "cancelled, they became, and")
}

// The engine waits for a SQL transaction with its key, and replays the result that it commits.
func TestEngineWaitsForSQLTransaction(t *testing.T) {
	t.Parallel()
	pool, e := served(t)
	tx := begin(t, pool)
	exec(t, tx, `SELECT pawl.claim('order:place', 'checkout', pawl.fingerprint('order', 'place', $1::jsonb), 'order', 'place')`,
		payloadOf("k-1"))
	ended := make(chan transitions.Reply, 1)
	go func() {
		r, err := e.Submit(t.Context(), place("checkout", "k-1"))
		ended <- transitions.Reply{Receipt: r, Err: err}
	}()
	pgtest.WaitBlocked(t, pool, "INSERT INTO pawl.command")
	// The engine has created the instance and waits for the key; SQL holds the key and creates the instance. The engine yields.
	exec(t, tx, `SELECT pawl.transition('order:place', 'checkout', 1, 0, 'placed', '{}', $1::json, business_key => 'c-1:k-1')`,
		payloadOf("k-1"))
	commit(t, tx)
	got := <-ended
	assert.Truef(t, got.Err == nil && got.Receipt.Replayed && got.Receipt.Status == 201 && got.Receipt.Position == 1,
		"got %+v, %v", got.Receipt, got.Err)
	verified(t, e)
}

// Callers of both kinds use every key concurrently: each has one effect and one result.
func TestSQLAndEngineCallersRace(t *testing.T) {
	t.Parallel()
	const keys, each = 30, 2
	pool, e := served(t)
	var mu sync.Mutex
	answers := map[string]map[string]int{} // by key: bodies and their number
	note := func(key, body string) {
		mu.Lock()
		defer mu.Unlock()
		if answers[key] == nil {
			answers[key] = map[string]int{}
		}
		answers[key][body]++
	}
	var work sync.WaitGroup
	for n := range keys {
		key, cart := fmt.Sprint("key-", n), fmt.Sprint("k-", n)
		for range each {
			work.Go(func() {
				r, err := e.Submit(t.Context(), place(key, cart))
				assert.Truef(t, err == nil && r.Status == 201, "the engine: %+v, %v", r, err)
				note(key, string(r.Body))
			})
			work.Go(func() {
				body, err := placeUntilDone(t.Context(), pool, key, cart)
				assert.NoError(t, err, "SQL")
				note(key, body)
			})
		}
	}
	work.Wait()
	for key, bodies := range answers {
		assert.Lenf(t, bodies, 1, "the callers of %s", key)
	}
	v := verified(t, e)
	assert.Truef(t, v.Instances == keys && v.Entries == keys, "got %+v", v)
	for _, what := range []string{"command", "outbox"} {
		assert.Equalf(t, keys, ask[int](t, pool, "SELECT count(*) FROM pawl."+what), "rows in %s", what)
	}
}

// placeUntilDone places an order like a SQL caller that retries transient failures, and returns the result with its position.
func placeUntilDone(ctx context.Context, pool *pgxpool.Pool, key, cart string) (body string, err error) {
	for range 100 {
		err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			c, err := claimAs(ctx, tx, "'order:place', $1, pawl.fingerprint('order', 'place', $2::jsonb), 'order', 'place'", key, payloadOf(cart))
			if err != nil || c.Outcome == "replay" {
				if err == nil {
					body = *c.Body
				}
				return err
			}
			_, err = tx.Exec(ctx, `SELECT pawl.transition('order:place', $1, $2, 0, 'placed', '{}', $3::json, business_key => 'c-1:' || $4)`,
				key, c.Attempt, payloadOf(cart), cart)
			return err
		})
		if err == nil && body == "" {
			continue // claim again for the position, which is only known after the commit
		}
		if e, ok := errors.AsType[*pgconn.PgError](err); !ok || e.Code != "40P01" && e.Code != "40001" && e.ConstraintName != "instance_pkey" {
			break
		}
	}
	return body, err
}
