package upgrades

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/auth/apikey"
	"github.com/pawlhq/pawl/auth/ticket/keyset"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/outbox/relay"
	"github.com/pawlhq/pawl/schema"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

var update = flag.String("dump", "", "write the dump of this release, such as v0.1.0")

func TestMain(m *testing.M) { pgtest.Main(m) }

var tenants = []string{"default", "acme"}

// installation is a node on a database, with what is outside.
type installation struct {
	*testing.T
	pool   *pgxpool.Pool
	world  *world
	engine *engine.Engine
}

func install(t *testing.T, pool *pgxpool.Pool, broken bool) *installation {
	t.Helper()
	in := &installation{T: t, pool: pool, world: &world{broken: broken, gate: make(chan struct{})}}
	var err error
	in.engine, err = engine.New(engine.Config{
		Pool: pool, Workflows: in.world.workflows(), Log: slog.New(slog.DiscardHandler),
		// A node takes over from another one when it has had the database in sight for a lease.
		InFlight: engine.InFlightConfig{Lease: 2 * time.Second},
		// Dumps are old, and must not be removed by retention.
		Retention: engine.RetentionConfig{Off: true}, Sinks: []relay.Sink{{Name: "crm", To: crm{in.world}}},
	})
	if err == nil {
		err = in.engine.Start(t.Context())
	}
	require.NoError(t, err)
	t.Cleanup(func() { in.engine.Stop(context.Background()) })
	return in
}

// submit sends a command whose key says what it is. An instance is named by its number.
func (in *installation) submit(tenant, transition, number string, change ...func(*transitions.Command)) transitions.Receipt {
	in.Helper()
	c := transitions.Command{Tenant: tenant, Workflow: "trip", Transition: transition, Key: transition + " " + number,
		BusinessKey: number, Options: transitions.Options{Scope: "desk"}}
	if transition == "book" || transition == "note" || transition == "build" {
		c.Payload = fmt.Appendf(nil, `{"number":%q}`, number)
	}
	for _, f := range change {
		f(&c)
	}
	r, err := in.engine.Submit(in.Context(), c)
	if err == nil {
		err = r.Err()
	}
	if err != nil {
		in.Fatalf("%s of %s: %v", transition, number, err)
	}
	return r
}

func of(name string) func(*transitions.Command) {
	return func(c *transitions.Command) { c.Workflow, c.BusinessKey = name, "" }
}

func (in *installation) count(sql string, args ...any) (n int) {
	in.Helper()
	if err := in.pool.QueryRow(in.Context(), sql, args...).Scan(&n); err != nil {
		in.Fatal(err)
	}
	return n
}

func (in *installation) exec(sql string, args ...any) {
	in.Helper()
	if _, err := in.pool.Exec(in.Context(), sql, args...); err != nil {
		in.Fatal(err)
	}
}

// kinds are the kinds of work that are in flight in a dump, of each tenant: what counts them.
var kinds = map[string]string{
	"timers":         "command WHERE phase = 'scheduled' AND starts_with(scope, 'pawl:') AND tenant = $1",
	"planned":        "command WHERE phase = 'scheduled' AND scope = 'desk' AND tenant = $1",
	"leased":         "command WHERE phase = 'working' AND status = 'processing' AND tenant = $1",
	"retried":        "command WHERE phase = 'working' AND run_at > now() AND failures > 0 AND tenant = $1",
	"stuck":          "command WHERE stuck IS NOT NULL AND tenant = $1",
	"undone":         "command WHERE phase = 'undoing' AND run_at > now() AND tenant = $1",
	"held in SQL":    "command WHERE phase = 'sql' AND tenant = $1",
	"tombstones":     "command WHERE status = 'expired' AND tenant = $1",
	"children":       "instance WHERE workflow = 'leg' AND open AND tenant = $1",
	"dead letters":   "outbox_dead WHERE status = 'waiting' AND tenant = $1",
	"late events":    "outbox_dead WHERE status = 'queued' AND attempts > 0 AND tenant = $1",
	"dead messages":  "inbox_dead WHERE tenant = $1",
	"paused flows":   "paused WHERE tenant = $1",
	"paused trips":   "instance WHERE paused AND tenant = $1",
	"keys":           "api_key WHERE tenant = $1",
	"keys of ticket": "ticket_key WHERE $1 <> ''",
	"migrations":     "instance_migration WHERE ended_at IS NULL AND migrated = 2 AND rejected = 2 AND waiting = 2 AND $1 <> ''",
	"migrated rooms": "instance WHERE workflow = 'room' AND definition = 2 AND links IS NOT NULL AND tenant = $1",
}

// ofRoom has a command be one for a room.
func ofRoom(c *transitions.Command) { c.Workflow = "room" }

// fill has work of every kind in flight.
func (in *installation) fill() {
	ctx := in.Context()
	if err := in.engine.Admin().BeginVersion(ctx, "room", 1, "ann"); err != nil {
		in.Fatal(err)
	}
	for _, tenant := range tenants {
		for _, number := range []string{"moved", "shut", "dirty"} {
			in.submit(tenant, "build", number, ofRoom)
		}
		in.submit(tenant, "clean", "dirty", ofRoom)
		for _, number := range []string{"idle", "planned", "pay-held", "pay-retried", "visa", "fly", "refusing", "paused", "gone"} {
			in.submit(tenant, "book", number)
		}
		in.submit(tenant, "note", "idle")
		in.submit(tenant, "note", "planned", func(c *transitions.Command) { c.NotBefore = time.Now().Add(time.Hour) })
		for _, activity := range []string{"pay-held", "pay-retried", "visa"} {
			in.submit(tenant, activity, activity)
		}
		in.submit(tenant, "deposit", "fly")
		await.Eventually(in, "it is deposited", func() bool {
			return in.count(`SELECT count(*) FROM pawl.instance WHERE state = 'secured' AND tenant = $1`, tenant) == 1
		})
		in.submit(tenant, "fly", "fly")
		in.submit(tenant, "make", "", of("offer"))
		in.submit(tenant, "plan", "", of("tour"))
		if r, err := in.engine.Consume(ctx, message(tenant)); err != nil || r.Status != http.StatusConflict {
			in.Fatalf("%+v, %v", r, err)
		}
		in.operate(tenant, "paused", transitions.Operation{Action: transitions.Pause, Reason: "a strike"})
		if err := in.engine.Admin().PauseWorkflow(ctx, tenant, "offer", "ann", "no more"); err != nil {
			in.Fatal(err)
		}
		in.exec(`SELECT pawl.claim('report', '1', sha256('1'), lease => '1 microsecond', tenant => $1)`, tenant)
		in.exec(`UPDATE pawl.command SET expires_at = now() - interval '1 second' WHERE key = 'book gone' AND tenant = $1`, tenant)
		if _, _, err := apikey.NewTable(in.pool, schema.For(schema.Default)).Create(ctx, apikey.Key{Tenant: tenant, Name: "ci",
			Actor: "robot", Grants: auth.Grants{{Right: auth.Read}}, CreatedBy: "ann"}); err != nil {
			in.Fatal(err)
		}
	}
	if _, err := in.engine.Admin().MigrateInstances(ctx, inspect.MigrationRequest{Workflow: "room", From: 1, To: 2, Actor: "ann",
		Reason: "floors"}); err != nil {
		in.Fatal(err)
	}
	in.exec(`SELECT pawl.purge()`) // makes a tombstone of the key that has expired
	signs := keyset.New(keyset.Config{Pool: in.pool, In: schema.For(schema.Default)})
	defer signs.Stop()
	if _, err := signs.Newest(ctx); err != nil {
		in.Fatal(err)
	}
	if err := in.engine.Admin().BeginVersion(ctx, "trip", 1, "ann"); err != nil {
		in.Fatal(err)
	}
	for kind, what := range kinds {
		for _, tenant := range tenants {
			await.Eventually(in, "there are "+kind, func() bool { return in.count("SELECT count(*) FROM pawl."+what, tenant) > 0 })
		}
	}
}

func message(tenant string) transitions.Message {
	return transitions.Message{Tenant: tenant, Consumer: "post", ID: "m-1", Body: []byte(`{"number":"refusing"}`)}.WithDefaults()
}

func (in *installation) operate(tenant, number string, o transitions.Operation) {
	in.Helper()
	c := transitions.Command{Tenant: tenant, Key: string(o.Action) + " " + number, Actor: "ann"}
	if o.Target == (transitions.CommandRef{}) {
		c.Instance = transitions.InstanceID(tenant, "trip", number)
	}
	if r, err := in.engine.Admin().Operate(in.Context(), c, o); err != nil || r.Err() != nil {
		in.Fatalf("%s %s: %v, %v", o.Action, number, err, r.Err())
	}
}

// pass lets the time come for which work waits, and the leases run out of nodes that are gone.
func pass(in *installation) {
	in.exec(`UPDATE pawl.command SET run_at = now() WHERE run_at > now()`)
	in.exec(`UPDATE pawl.command SET locked_until = now() WHERE locked_until > now()`)
	in.exec(`UPDATE pawl.outbox_sink SET locked_until = now() WHERE locked_until > now()`)
	in.exec(`UPDATE pawl.instance_migration SET locked_until = now() WHERE locked_until > now()`)
}

// goesOn wants that what fill has left in flight comes to its end.
func (in *installation) goesOn() {
	for _, tenant := range tenants {
		in.verify(tenant)
		r := in.submit(tenant, "book", "idle")
		if !r.Replayed || r.Status != http.StatusCreated || r.Instance != transitions.InstanceID(tenant, "trip", "idle") {
			in.Errorf("an old key is answered with %+v", r)
		}
		_, err := in.engine.Submit(in.Context(), transitions.Command{Tenant: tenant, Workflow: "trip", Transition: "book",
			Key:     "book gone",
			Payload: []byte(`{"number":"gone"}`), Options: transitions.Options{Scope: "desk"}})
		if workflow.CodeOf(err) != workflow.KeyExpired {
			in.Errorf("a tombstone says %v", err)
		}
		in.settle(tenant)
		if r, err := in.engine.Admin().RetryMessage(in.Context(), message(tenant).Ref(), "ann", "mended"); err != nil || r.Status != http.StatusOK {
			in.Errorf("a dead message: %+v, %v", r, err)
		}
		if err := in.engine.Admin().ResumeWorkflow(in.Context(), tenant, "offer"); err != nil {
			in.Error(err)
		}
		in.operate(tenant, "paused", transitions.Operation{Action: transitions.Resume})
		in.submit(tenant, "note", "paused")
		in.exec(`SELECT pawl.succeed('report', '1', 1, tenant => $1)`, tenant)
		var leg uuid.UUID
		if err := in.pool.QueryRow(in.Context(), `SELECT id FROM pawl.instance WHERE workflow = 'leg' AND tenant = $1`,
			tenant).Scan(&leg); err != nil {
			in.Fatal(err)
		}
		in.submit(tenant, "finish", "", of("leg"), func(c *transitions.Command) { c.Instance = leg })
		if _, err := in.engine.Admin().Redrive(in.Context(), inspect.DeadFilter{Sink: "crm", Tenant: tenant}, "ann", "mended"); err != nil {
			in.Error(err)
		}
		in.submit(tenant, "book", "new")
		in.submit(tenant, "pay-held", "new")
	}
	await.Eventually(in, "nothing is in flight",
		func() bool { return in.count(`SELECT count(*) FROM pawl.command WHERE phase IS NOT NULL`) == 0 })
	await.Eventually(in, "every event is delivered", func() bool {
		return in.count(`SELECT (SELECT count(*) FROM pawl.outbox_dead WHERE status IN ('waiting', 'queued')) +
			(SELECT coalesce(sum(l.head - c.position), 1) FROM pawl.log AS l JOIN pawl.outbox_cursor AS c USING (tenant))`) == 0
	})
	await.Eventually(in, "the migration ends", func() bool {
		return in.count(`SELECT count(*) FROM pawl.instance_migration WHERE ended_at IS NOT NULL AND migrated = 4 AND rejected = 2`) == 1
	})
	for _, tenant := range tenants {
		in.submit(tenant, "lock", "moved", ofRoom)
		in.submit(tenant, "lock", "dirty", ofRoom)
		in.submit(tenant, "raze", "shut", ofRoom)
		in.verify(tenant)
		for number, state := range map[string]string{"planned": "booked", "pay-held": "paid", "pay-retried": "paid", "visa": "allowed",
			"fly": "grounded", "new": "paid"} {
			if i, err := in.engine.Read().Instance(in.Context(), tenant, transitions.InstanceID(tenant, "trip", number)); err != nil ||
				string(i.State) != state {
				in.Errorf("%s is %q, not %q: %v", number, i.State, state, err)
			}
		}
		if n := in.count(`SELECT count(*) FROM pawl.instance WHERE state IN ('toured', 'lapsed') AND tenant = $1`, tenant); n != 2 {
			in.Errorf("%d of a tour and an offer have come to their end", n)
		}
	}
}

// settle has what is stuck done once more.
func (in *installation) settle(tenant string) {
	in.Helper()
	list, _, err := in.engine.Admin().Stuck(in.Context(), inspect.StuckFilter{Tenant: tenant, Limit: 10})
	if err != nil || len(list) != 1 {
		in.Fatalf("%d are stuck, %v", len(list), err)
	}
	in.operate(tenant, "visa", transitions.Operation{Action: transitions.Retry,
		Target: transitions.CommandRef{Scope: list[0].Scope, Key: list[0].Key}})
}

func (in *installation) verify(tenant string) {
	in.Helper()
	if v, err := in.engine.Admin().Verify(in.Context(), tenant, uuid.Nil); err != nil || len(v.Broken) > 0 || v.Instances == 0 {
		in.Errorf("verify: %+v, %v", v, err)
	}
}

// made makes the dump of a database of this build.
func made(t *testing.T) string {
	pool := pgtest.DirectTo(t, pgtest.EmptyPool(t))
	_, err := schema.Migrate(t.Context(), pool, schema.Default)
	require.NoError(t, err)
	in := install(t, pool, true)
	in.fill()
	script := dump(t, pool)
	close(in.world.gate)
	in.engine.Stop(context.Background())
	return script
}

// goOn has a dump go on under this build.
func goOn(t *testing.T, script string) {
	pool := pgtest.EmptyPool(t)
	load(t, pool, script)
	_, err := schema.Migrate(t.Context(), pool, schema.Default)
	require.NoError(t, err)
	pass(&installation{T: t, pool: pool})
	install(t, pool, false).goesOn()
}

// A dump of this build continues in another database, so a dump of a release is complete.
func TestADatabaseOfThisBuildGoesOn(t *testing.T) {
	script := made(t)
	if *update != "" {
		writeDump(t, filepath.Join("testdata", *update+".sql.gz"), script)
	}
	goOn(t, script)
}

func TestDatabasesOfReleasesGoOn(t *testing.T) {
	changes, err := os.ReadFile("../../../CHANGELOG.md")
	require.NoError(t, err)
	dumps, err := filepath.Glob("testdata/v*.sql.gz")
	require.Truef(t, err == nil && len(dumps) != 0, "there are no dumps: %v", err)
	for _, path := range dumps {
		release := strings.TrimSuffix(filepath.Base(path), ".sql.gz")
		t.Run(release, func(t *testing.T) {
			script := readDump(t, path)
			tables, _, _ := strings.Cut(script, dataBegins)
			if same := strings.HasPrefix(schema.Plan(schema.Default, 0), tables); !same {
				if !strings.Contains(string(changes), "\n## "+release) {
					t.Skipf("%s is not out, and its tables have changed since: make the dump again with go test ./internal/testkit/upgrades -dump %[1]s", release)
				}
				t.Errorf("a migration of %s is not what it was: those of a release are never edited", release)
			}
			goOn(t, script)
		})
	}
}
