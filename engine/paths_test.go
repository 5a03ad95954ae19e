package engine_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// There are several paths through the pipeline. The answer must not depend on the path.

type machine struct {
	Turns int `json:"turns"`
}

type build struct {
	Serial string `json:"serial"`
	Broken bool   `json:"broken"`
}

type turn struct {
	By    int  `json:"by" validate:"min=1"`
	Twice bool `json:"twice"`
}

func assemble(_ *workflow.Call, _ *machine, p build) error {
	if p.Broken {
		return workflow.Refuse("broken parts")
	}
	return nil
}

func crank(c *workflow.Call, d *machine, p turn) error {
	if p.By > 100 {
		return workflow.Refuse("that is too far")
	}
	d.Turns += p.By
	c.Return(d.Turns)
	if p.Twice {
		c.Emit("machine.hot", d)
	}
	return nil
}

func idle(context.Context, pgx.Tx, machine, turn) error { return nil }

func machines() workflow.Source {
	serial := func(p build) string { return p.Serial }
	return workflow.Define("machine", 1,
		workflow.Start("make", "ready", assemble),
		workflow.Start("register", "ready", assemble).BusinessKey(serial),
		workflow.Start("reserve", "ready", assemble).BusinessKey(serial).RefuseExisting(),
		workflow.On("turn", workflow.From("ready"), workflow.Stay, crank),
		engine.InTx(workflow.On("turn-in-tx", workflow.From("ready"), workflow.Stay, crank), idle),
		workflow.On("scrap", workflow.From("ready"), "scrapped", nothing[machine, workflow.None]).Role("owner"),
		workflow.On("polish", workflow.From("scrapped"), "scrapped", nothing[machine, workflow.None]),
		workflow.On("melt", workflow.From("scrapped"), "gone", nothing[machine, workflow.None]),
	).Final("gone").Roles("owner")
}

// A path submits one command.
type path func(t *testing.T, e *engine.Engine, pool *pgxpool.Pool, c transitions.Command) (transitions.Receipt, error)

var paths = map[string]path{
	"alone": func(t *testing.T, e *engine.Engine, _ *pgxpool.Pool, c transitions.Command) (transitions.Receipt, error) {
		return e.Submit(t.Context(), c)
	},
	"in a group": func(t *testing.T, e *engine.Engine, _ *pgxpool.Pool, c transitions.Command) (transitions.Receipt, error) {
		cs := []transitions.Command{c}
		for i := range 20 {
			cs = append(cs, transitions.Command{Workflow: "machine", Transition: "make", Key: fmt.Sprint(c.Key, " and ", i), Tenant: c.Tenant})
		}
		replies := e.SubmitMany(t.Context(), cs)
		for i, r := range replies[1:] {
			assert.Truef(t, r.Err == nil && r.Receipt.Status == 201, "its neighbour %d: status %d, %v", i, r.Receipt.Status, r.Err)
		}
		return replies[0].Receipt, replies[0].Err
	},
	"in the caller's transaction": func(t *testing.T, e *engine.Engine, pool *pgxpool.Pool,
		c transitions.Command) (receipt transitions.Receipt, failure error) {
		err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			receipt, failure = e.SubmitTx(t.Context(), tx, c)
			return nil
		})
		return receipt, errors.Join(failure, err)
	},
}

func TestEveryPathGivesTheSameOutcomeReplayAndRows(t *testing.T) {
	t.Parallel()
	pool, e := started(t, func(c *engine.Config) { c.Workflows = []workflow.Source{machines()} })
	cases := []struct {
		name   string
		cmd    transitions.Command
		status int           // of a receipt
		code   workflow.Code // of a refusal, or of an error
		steps  int64         // transitions that it makes
		events int64
	}{
		{"made", transitions.Command{Transition: "make", Payload: []byte(`{}`)}, 201, "", 1, 1},
		{"refused when made", transitions.Command{Transition: "make", Payload: []byte(`{"broken":true}`)}, 409, workflow.GuardRefused, 0, 0},
		{"registered", transitions.Command{Transition: "register", Payload: []byte(`{"serial":"new"}`)}, 201, "", 1, 1},
		{"refused when registered", transitions.Command{Transition: "register", Payload: []byte(`{"serial":"other","broken":true}`)}, 409,
			workflow.GuardRefused, 0, 0},
		{"registered before", transitions.Command{Transition: "register", Payload: []byte(`{"serial":"old"}`)}, 200, "", 0, 0},
		{"registered before, and broken", transitions.Command{Transition: "register", Payload: []byte(`{"serial":"old","broken":true}`)}, 200, "",
			0, 0},
		{"reserved before", transitions.Command{Transition: "reserve", Payload: []byte(`{"serial":"old"}`)}, 409, workflow.AlreadyExists, 0, 0},
		{"turned", transitions.Command{Transition: "turn", BusinessKey: "old", Payload: []byte(`{"by":1}`)}, 200, "", 1, 1},
		{"turned, with two events", transitions.Command{Transition: "turn", BusinessKey: "old", Payload: []byte(`{"by":1,"twice":true}`)}, 200,
			"", 1, 2},
		{"turned with own SQL", transitions.Command{Transition: "turn-in-tx", BusinessKey: "old", Payload: []byte(`{"by":1}`)}, 200, "", 1, 1},
		{"refused when turned", transitions.Command{Transition: "turn", BusinessKey: "old", Payload: []byte(`{"by":101}`)}, 409,
			workflow.GuardRefused, 0, 0},
		{"illegal", transitions.Command{Transition: "polish", BusinessKey: "old"}, 409, workflow.IllegalTransition, 0, 0},
		{"another version", transitions.Command{Transition: "turn", BusinessKey: "old", Payload: []byte(`{"by":1}`),
			Options: transitions.Options{IfVersion: 99}}, 412,
			workflow.VersionConflict, 0, 0},
		{"no role", transitions.Command{Transition: "scrap", BusinessKey: "old"}, 0, workflow.RoleRequired, 0, 0},
		{"no instance", transitions.Command{Transition: "turn", BusinessKey: "never", Payload: []byte(`{"by":1}`)}, 0, workflow.InstanceNotFound,
			0, 0},
		{"not valid", transitions.Command{Transition: "turn", BusinessKey: "old", Payload: []byte(`{"by":0}`)}, 0, workflow.InvalidPayload, 0, 0},
	}
	for name, submit := range paths {
		t.Run(name, func(t *testing.T) {
			tenant := uuid.NewString()[:8]
			old := transitions.Command{Tenant: tenant, Workflow: "machine", Transition: "register", Key: "old", Payload: []byte(`{"serial":"old"}`)}
			r, err := e.Submit(t.Context(), old)
			require.Truef(t, err == nil && r.Status == 201, "%v %v", r.Status, err)
			for _, c := range cases {
				t.Run(c.name, func(t *testing.T) {
					cmd := c.cmd
					cmd.Tenant, cmd.Workflow, cmd.Key = tenant, "machine", c.name
					count := func() (steps, events, commands int64) {
						of := func(table string) int64 {
							return query[int64](t, pool, `SELECT count(*) FROM pawl.`+table+` x JOIN pawl.audit a USING (tenant, instance, version)
								WHERE tenant = $1 AND a.key = $2`, tenant, c.name)
						}
						return of("audit"), of("outbox"), query[int64](t, pool, `SELECT count(*) FROM pawl.command WHERE tenant = $1 AND key = $2`, tenant,
							c.name)
					}
					first, err := submit(t, e, pool, cmd)
					checkOutcome(t, first, err, c.status, c.code, false)
					stored := int64(0)
					if c.status != 0 {
						stored = 1
					}
					steps, events, commands := count()
					assert.Truef(t, steps == c.steps && events == c.events && commands == stored,
						"left %d audit rows, %d events and %d commands; want %d, %d and %d", steps, events, commands, c.steps, c.events, stored)
					for again, replay := range paths {
						r, err := replay(t, e, pool, cmd)
						checkOutcome(t, r, err, c.status, c.code, c.status != 0)
						// In the caller's own transaction the first answer cannot know its position.
						assert.Falsef(t, name != "in the caller's transaction" && string(r.Body) != string(first.Body),
							"replayed %s: %s; first was %s", again, r.Body, first.Body)
					}
					if steps, events, commands := count(); steps != c.steps || events != c.events || commands != stored {
						t.Errorf("after the replays there are %d audit rows, %d events and %d commands", steps, events, commands)
					}
				})
			}
			v, err := e.Admin().Verify(t.Context(), tenant, uuid.Nil)
			assert.Truef(t, err == nil && len(v.Broken) == 0, "verify: %v, %v", v.Broken, err)
		})
	}
}

func checkOutcome(t *testing.T, r transitions.Receipt, err error, status int, code workflow.Code, replayed bool) {
	t.Helper()
	assert.Truef(t, r.Status == status && r.Replayed == replayed,
		"status %d, replayed %v; want %d, %v (%v)", r.Status, r.Replayed, status, replayed, err)
	if err == nil {
		err = r.Err()
	}
	assert.Equalf(t, code, workflow.CodeOf(err), "error %v; want code", err)
}

// Repeated requests for finished commands write nothing and wait for no lock. A new command among them is executed.
func TestReplaysInGroupsLockNothing(t *testing.T) {
	t.Parallel()
	pool, e := started(t, func(c *engine.Config) { c.Pipeline.Committers = 1 })
	const many = 20
	var cs []transitions.Command
	for i := range many {
		cs = append(cs, applied(fmt.Sprint("n-", i), 100))
	}
	ask := func(replayed bool, cs ...transitions.Command) {
		t.Helper()
		for i, r := range e.SubmitMany(t.Context(), cs) {
			require.Truef(t, r.Err == nil && r.Receipt.Replayed == replayed, "%s: replayed %v, %v", cs[i].Key, r.Receipt.Replayed, r.Err)
		}
	}
	ask(false, cs...)
	ask(true, cs...) // from now on the engine expects no other
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	defer rollback(t, tx)
	n, err := tx.Exec(t.Context(), "SELECT FROM pawl.instance FOR UPDATE")
	require.Truef(t, err == nil && n.RowsAffected() == many, "%v %v", n, err)
	ask(true, cs...)
	ask(true, cs[:2]...)
	rollback(t, tx)
	ask(false, append([]transitions.Command{}, applied("another", 100), applied("more", 100))...)
	mixed := append([]transitions.Command{applied("last", 100)}, cs...)
	for i, r := range e.SubmitMany(t.Context(), mixed) {
		assert.Truef(t, r.Err == nil && r.Receipt.Replayed == (i > 0), "%s: replayed %v, %v", mixed[i].Key, r.Receipt.Replayed, r.Err)
	}
}

func TestDryRunPredictsSubmit(t *testing.T) {
	t.Parallel()
	pool := database(t)
	now := time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)
	e := newEngine(t, pool, func(c *engine.Config) { c.Now = func() time.Time { return now } })
	submit(t, e, applied("L-1", 100))
	stale := on("pay", "L-1", "stale", 1, "")
	stale.IfVersion = 7
	forgive := transitions.Command{Workflow: "loan", Transition: "forgive", BusinessKey: "L-1", Key: "forgive", Actor: "ann",
		Roles: []string{"boss"}}
	byID := transitions.Command{Instance: loanID("L-1"), Transition: "pay", Key: "by-id", Payload: []byte(`{"amount":1,"do":""}`)}
	again := applied("L-1", 5)
	again.Key = "again"
	for i, c := range []transitions.Command{
		applied("L-2", 50), again, stale, forgive, byID,
		on("pay", "L-1", "ok", 20, ""), on("pay", "L-1", "too much", 1000, ""), on("book", "L-1", "booked", 9, ""),
		on("pay", "L-2", "to the end", 50, ""), on("pay", "L-2", "after the end", 1, ""),
		on("pay", "L-3", "nobody's", 1, ""), on("pay", "L-1", "malformed", -1, ""),
		{Workflow: "loan", Transition: "fly", Key: "k", BusinessKey: "L-1"}, {Workflow: "gift", Transition: "give", Key: "k"},
		{Instance: uuid.New(), Transition: "pay", Key: "k"},
	} {
		t.Run(fmt.Sprint(i, " ", c.Transition, " ", c.Key), func(t *testing.T) {
			before := rowCounts(t, pool)
			dry, dryErr := e.DryRun(t.Context(), c)
			wantMore(t, pool, before, nil)
			c.Key += "!" // a dry run needs no key and takes none
			unkeyed := c
			unkeyed.Key = ""
			again, err := e.DryRun(t.Context(), unkeyed)
			assert.Truef(t, reflect.DeepEqual(again, dry) && fmt.Sprint(err) == fmt.Sprint(dryErr),
				"without a key: got %+v, %v, want %+v, %v", again, err, dry, dryErr)
			done, err := e.Submit(t.Context(), c)
			require.Truef(t, fmt.Sprint(err) == fmt.Sprint(dryErr) && workflow.CodeOf(err) == workflow.CodeOf(dryErr),
				"Submit: %v; the dry run: %v", err, dryErr)
			if err != nil {
				return
			}
			assert.Truef(t, dry.Position == 0 && !dry.Replayed, "a dry run has position %d, replayed %v", dry.Position, dry.Replayed)
			dry.Position, dry.Body = done.Position, transitions.WithPosition(dry.Body, done.Position)
			if done.Refused() { // is final; that of the dry run is not, and is equal otherwise
				assert.NotContainsf(t, string(dry.Body), "inal", "the dry run's refusal is final: %s", dry.Body)
				done.Body = transitions.ProblemOf(done.Err()).Unkept().JSON()
			}
			assert.Equalf(t, done, dry, "the dry run said %s and \nSubmit answered %s and", dry.Body, done.Body)
		})
	}
}

func TestADryRunDoesNotRunTheUsersSQL(t *testing.T) {
	t.Parallel()
	pool, e := started(t)
	submit(t, e, applied("L-1", 100))
	before := rowCounts(t, pool)
	dry, err := e.DryRun(t.Context(), on("book", "L-1", "", 10, "panic"))
	assert.Truef(t, err == nil && dry.Status == 200 && strings.Contains(string(dry.Body), `"owed":90`), "got %+v, %v", dry, err)
	wantMore(t, pool, before, nil)
}
