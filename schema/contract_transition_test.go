package schema_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/audit/verify"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/kernel/outbox"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/schema"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// move claims the key of a transition and executes it. rest are arguments in SQL.
func move(t testing.TB, q querier, key string, id uuid.UUID, name, rest string) string {
	t.Helper()
	return ask[string](t, q, fmt.Sprintf(`SELECT pawl.transition('order:%[2]s', '%[1]s', c.attempt, %[4]s)::text
		FROM pawl.claim('order:%[2]s', '%[1]s', pawl.fingerprint('order', '%[3]s', instance => '%[2]s'), 'order', '%[3]s', '%[2]s') AS c`, key,
		id, name, rest))
}

// refuseMove is move with an expected refusal.
func refuseMove(t testing.TB, q querier, state string, id uuid.UUID, name, rest string) string {
	t.Helper()
	return refused(t, q, state, fmt.Sprintf(`SELECT pawl.transition('s', 'refused', c.attempt, %[3]s)
		FROM pawl.claim('s', 'refused', sha256('x'), 'order', '%[2]s', '%[1]s') AS c`, id, name, rest)).Message
}

func TestSQLTransitionMatchesEngine(t *testing.T) {
	t.Parallel()
	pool, e := served(t)
	id := idOf("k-1")

	// The first transition is in SQL, the second by the engine, the third in SQL.
	ask[string](t, pool, placeInSQL, "checkout", payloadOf("k-1"), "k-1")
	r, err := e.Submit(t.Context(), transitions.Command{Workflow: "order", BusinessKey: "c-1:k-1", Transition: "note", Key: "n",
		Options: transitions.Options{IfVersion: 1}})
	require.Truef(t, err == nil && r.Status == 200 && r.Version == 2 && r.Position == 2, "got %+v, %v", r, err)
	body := move(t, pool, "s", id, "ship", `2, 'shipped', '{"customer":"c-1","total":129900,"parcel":"p-1"}', '{"parcel":"p-1"}',
		result => '{"eta": 3}', attributes => '{"region":"r-1"}', reason => 'Zoë said "now"',
		events => '[{"type":"parcel.left","payload":{"n": 1}},{"type":"parcel.seen","payload":[]}]'`)
	r, err = e.Submit(t.Context(), transitions.Command{Workflow: "order", BusinessKey: "c-1:k-1", Transition: "ship", Key: "s"})
	require.Truef(t, err == nil && r.Replayed && r.Version == 3 && r.Position == 3 &&
		string(r.Body) == string(transitions.WithPosition([]byte(body), 3)), "got %+v %s, %v", r, r.Body, err)
	result, err := r.Result()
	assert.Truef(t, err == nil && string(result.Result) == `{"eta": 3}` && result.State == shipped && result.Transition == "ship",
		"got %+v, %v", result, err)

	inst, err := e.Read().Instance(t.Context(), "", id)
	assert.Truef(t, err == nil && inst.State == shipped && !inst.Open && inst.Version == 3 && inst.BusinessKey == "c-1:k-1" &&
		inst.Attributes["region"] == "r-1" && inst.Definition == 1 && string(inst.Data) == `{"customer":"c-1","total":129900,"parcel":"p-1"}`,
		"got %+v, %v", inst, err)
	v := verified(t, e)
	assert.Truef(t, v.Instances == 1 && v.Entries == 3, "got %+v", v)
	entries, err := e.Read().History(t.Context(), "", id, 2, 10)
	require.Truef(t, err == nil && len(entries) == 1, "%v %v", entries, err)
	got := entries[0]
	want := transitions.Entry{Tenant: "default", Instance: id, Version: 3, Position: 3, Workflow: "order", Transition: "ship", From: placed,
		To: shipped, Actor: "local", Reason: `Zoë said "now"`, Payload: []byte(`{"parcel":"p-1"}`), Data: inst.Data, Scope: "order:" + id.String(), Key: "s",
		At: got.At, Hash: inst.Chain}
	assert.Equalf(t, fmt.Sprintf("%+v", want), fmt.Sprintf("%+v", got), "got  %+v\nwant %+v", got, want)

	events, err := outbox.New(pool, schema.For(schema.Default), "").After(t.Context(), "default", 2, 10)
	require.Truef(t, err == nil && len(events) == 3, "%v %v", events, err)
	for n, want := range []string{`order.ship ` + string(inst.Data), `parcel.left {"n": 1}`, `parcel.seen []`} {
		x := events[n]
		assert.Truef(t, x.Position == 3 && x.Ordinal == n && x.Type+" "+string(x.Payload) == want && x.Version == 3 && x.State == shipped &&
			x.Instance == id && x.At.Equal(got.At) && x.Actor == "local" && x.Reason == got.Reason && x.From == placed &&
			x.Scope == got.Scope && x.Key == "s" && x.Cause == transitions.CausedByCaller && x.BusinessKey == "c-1:k-1" &&
			x.Attributes["region"] == "r-1", "event %d is %+v", n, x)
	}
}

func TestInstanceWithoutBusinessKeyGetsUUIDv7(t *testing.T) {
	t.Parallel()
	pool, e := served(t)
	before := time.Now().Add(-time.Minute)
	body := ask[string](t, pool, `SELECT pawl.transition('s', 'k', c.attempt, 0, 'placed', '{}')::text
		FROM pawl.claim('s', 'k', sha256('x'), 'order', 'draft') AS c`)
	r, err := e.Read().Command(t.Context(), transitions.Ref{Scope: "s", Key: "k"})
	require.Truef(t, err == nil && r.Instance.Version() == 7 && strings.Contains(body, r.Instance.String()), "got %+v, %v", r, err)
	seconds, _ := r.Instance.Time().UnixTime()
	made := time.Unix(seconds, 0)
	assert.Truef(t, !made.Before(before) && !made.After(time.Now().Add(time.Minute)), "the id is from %s", made)
	const given = "01936b0e-0000-7000-8000-000000000001"
	exec(t, pool, `SELECT pawl.transition('s', 'given', c.attempt, 0, 'placed', '{}')
		FROM pawl.claim('s', 'given', sha256('x'), 'order', 'draft', '`+given+`') AS c`)
	inst, err := e.Read().Instance(t.Context(), "", uuid.MustParse(given))
	assert.Truef(t, err == nil && inst.Open, "got %+v, %v", inst, err)
	exec(t, pool, `SELECT pawl.transition('s', 'closed', c.attempt, 0, 'shipped', '{}')
		FROM pawl.claim('s', 'closed', sha256('x'), 'order', 'record') AS c`)
	assert.Equal(t, 1, ask[int](t, pool, "SELECT count(*) FROM pawl.instance WHERE state = 'shipped' AND NOT open"), "closed")
	verified(t, e)
}

func TestSQLTransitionChecksVersion(t *testing.T) {
	t.Parallel()
	pool, e := served(t)
	ask[string](t, pool, placeInSQL, "one", payloadOf("k-1"), "k-1")
	for _, version := range []string{"2", "-1", "NULL"} {
		refuseMove(t, pool, "40001", idOf("k-1"), "ship", version+", 'shipped', '{}'")
	}
	refuseMove(t, pool, "22023", idOf("k-0"), "ship", "1, 'shipped', '{}'") // there is none

	// The engine moves the instance while SQL only holds the key.
	exec(t, pool, `SELECT pawl.claim('s', 'k', sha256('x'), 'order', 'ship', $1)`, idOf("k-1"))
	tx := begin(t, pool)
	_, err := e.SubmitTx(t.Context(), tx, transitions.Command{Workflow: "order", Instance: idOf("k-1"), Transition: "note", Key: "n"})
	require.NoError(t, err)
	ship := background(t, pool, func(conn *pgxpool.Conn) (string, error) {
		_, err := conn.Exec(t.Context(), `SELECT pawl.transition('s', 'k', 1, 1, 'shipped', '{}')`)
		return "", err
	})
	commit(t, tx)
	raised(t, (<-ship).err, "40001")
	exec(t, pool, `SELECT pawl.transition('s', 'k', 1, 2, 'shipped', '{}')`)
	verified(t, e)
}

func TestSQLRejectsUnsupportedTransitions(t *testing.T) {
	t.Parallel()
	pool, e := served(t)
	ask[string](t, pool, placeInSQL, "one", payloadOf("k-1"), "k-1")
	for _, tt := range []struct{ state, name, rest, message string }{
		{"55000", "ship", "1, 'paid', '{}'", `not to "paid"`},
		{"55000", "note", "1, 'paid', '{}'", `not to "paid"`},
		{"55000", "giveup", "1, 'cancelled', '{}'", `in state "placed"`},
		{"55000", "nothing", "1, 'cancelled', '{}'", `in state "placed"`},
		{"55000", "place", "1, 'placed', '{}'", `in state "placed"`},
		{"55000", "ship", "0, 'shipped', '{}'", `in state ""`},
		{"22023", "ship", "1, 'shipped', '{}', business_key => 'c-1:k-1'", "no business key"},
		{"22023", "place", "0, 'placed', '{}'", "a business key"},
		{"22023", "ship", `1, 'shipped', '{}', events => '[{"type":"a\nb","payload":{}}]'`, "control characters"},
		{"23502", "ship", `1, 'shipped', '{}', events => '[{"type":"a"}]'`, "no payload"},
		{"0A000", "pay", "1, 'paid', '{}'", "an activity"},
		{"0A000", "check", "1, 'placed', '{}'", "guards"},
		{"0A000", "approve", "1, 'placed', '{}'", "a separation of duties"},
		{"0A000", "note", "1, 'placed', '{}'", "a separation of duties"},
		{"0A000", "second", "1, 'placed', '{}'", "a separation of duties"},
	} {
		assert.Containsf(t, refuseMove(t, pool, tt.state, idOf("k-1"), tt.name, tt.rest), tt.message, "%s %s", tt.name, tt.rest)
	}
	refused(t, pool, "22023", `SELECT pawl.transition('s', 'k', c.attempt, 0, 'x', '{}')
		FROM pawl.claim('s', 'k', sha256('x'), 'unknown', 'x') AS c`)
	refused(t, pool, "23502", `SELECT pawl.transition('s', 'k', c.attempt, 0, 'placed', NULL)
		FROM pawl.claim('s', 'k', sha256('x'), 'order', 'draft') AS c`)

	for spec, message := range map[string]string{
		`{"states":[{"name":"open","regions":[{"states":["a"]}]}]}`:                                     "composite states",
		`{"transitions":[{"name":"a"},{"name":"b","auto":true}]}`:                                       "automatic transitions",
		`{"transitions":[{"name":"close","from":["open"],"to":["closed"],"internal":true}],"name":"c"}`: "internal",
	} {
		state := "0A000"
		if message == "internal" {
			state = "55000"
		}
		e := refused(t, pool, state, `SELECT pawl.declared($1, 'close', 'open', 'closed', NULL)`, spec)
		assert.Contains(t, e.Message, message)
	}

	child := begin(t, pool)
	exec(t, child, `UPDATE pawl.instance SET links = '{"parent":{}}'`)
	assert.Contains(t, refuseMove(t, child, "55000", idOf("k-1"), "ship", "1, 'shipped', '{}'"), "parent")
	require.NoError(t, child.Rollback(t.Context()))

	// An instance of another workflow than claimed.
	exec(t, pool, "INSERT INTO pawl.definition (workflow, version, hash, spec) SELECT 'loan', version, hash, spec FROM pawl.definition")
	refused(t, pool, "22023", `SELECT pawl.transition('s', 'k', c.attempt, 1, 'shipped', '{}')
		FROM pawl.claim('s', 'k', sha256('x'), 'loan', 'ship', $1) AS c`, idOf("k-1"))

	// Instances that the engine has paused or is about to complete.
	require.NoError(t, errOf(e.Admin().Operate(t.Context(), transitions.Command{Instance: idOf("k-1"), Key: "p"},
		transitions.Operation{Action: transitions.Pause})))
	assert.Contains(t, refuseMove(t, pool, "55000", idOf("k-1"), "ship", "2, 'shipped', '{}'"), "is paused")
	require.NoError(t, errOf(e.Submit(t.Context(), place("two", "k-2"))))
	r, err := e.Submit(t.Context(), transitions.Command{Workflow: "order", Instance: idOf("k-2"), Transition: "pay", Key: "p"})
	require.Truef(t, err == nil && r.InFlight(), "got %+v, %v", r, err)
	assert.Contains(t, refuseMove(t, pool, "55000", idOf("k-2"), "cancel", "2, 'cancelled', '{}'"), "in flight")
	require.NoError(t, e.Admin().PauseWorkflow(t.Context(), "", "order", "ann", ""))
	assert.Contains(t, refused(t, pool, "55000", `SELECT pawl.transition('s', 'k', c.attempt, 0, 'placed', '{}')
		FROM pawl.claim('s', 'k', sha256('x'), 'order', 'draft') AS c`).Message, "is paused")
	assert.Equal(t, 0, ask[int](t, pool, "SELECT count(*) FROM pawl.command WHERE scope = 's'"), "refused commands left a row")
	verified(t, e)
}

// In a schema with another name the chain has the same label, but locks another number.
func TestContractInOtherSchema(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	require.NoError(t, errOf(schema.Migrate(t.Context(), pool, "other_1")))
	in := schema.For("other_1")
	started(t, pool, func(c *engine.Config) { c.Schema = "other_1" })
	ask[string](t, pool, in(strings.ReplaceAll(placeInSQL, "pawl.", "{pawl}.")), "checkout", payloadOf("k-1"), "k-1")
	v, err := verify.New(pool, in).Verify(t.Context(), "default", uuid.Nil, nil)
	assert.Truef(t, err == nil && v.Entries == 1 && len(v.Broken) == 0, "got %+v, %v", v, err)
	assert.Equal(t, 0, ask[int](t, pool, "SELECT count(*) FROM pawl.command"), "commands in the schema pawl")
	tx := begin(t, pool)
	exec(t, tx, "SELECT pawl.lock('r')")
	assert.True(t, ask[bool](t, pool, in("SELECT {pawl}.try_lock('r')")), "the two schemas share a lock")
}

// SQL callers use the default version.
func TestSQLCreationUsesDefaultVersion(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	none := func(*workflow.Call, *order, workflow.None) error { return nil }
	second := workflow.Define("order", 2, workflow.Start("draft", "drafted", none),
		workflow.On("drop", workflow.From("drafted"), cancelled, none)).Final(cancelled)
	e := started(t, pool, func(c *engine.Config) { c.Workflows = append(c.Workflows, second) })
	begin := func(key, state string) string {
		return `SELECT pawl.transition('s', '` + key + `', c.attempt, 0, '` + state + `', '{}') FROM pawl.claim('s', '` + key +
			`', sha256('x'), 'order', 'draft') AS c`
	}
	for _, tt := range []struct {
		said, want int
		state      string
	}{{1, 1, "placed"}, {2, 2, "drafted"}, {0, 2, "drafted"}} {
		require.NoError(t, e.Admin().BeginVersion(t.Context(), "order", tt.said, ""))
		key := fmt.Sprint(tt.said)
		exec(t, pool, begin(key, tt.state))
		got := ask[int](t, pool, "SELECT i.definition FROM pawl.instance AS i JOIN pawl.command AS c ON i.id = c.instance WHERE c.key = $1", key)
		assert.Equalf(t, tt.want, got, "said %d, it is version", tt.said)
	}
	id := ask[uuid.UUID](t, pool, "SELECT instance FROM pawl.command WHERE key = '1'")
	move(t, pool, "m", id, "ship", "1, 'shipped', '{}'") // by its own version, which is not the default any more
	verified(t, e)
}
