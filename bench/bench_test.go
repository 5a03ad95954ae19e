package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/localpg"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/outbox/sink/natstest"
)

func TestMain(m *testing.M) {
	if !IsNode() {
		pgtest.Main(m)
	} else if err := RunNode(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "node:", err)
		os.Exit(1)
	}
}

// smallConfig measures next to nothing, on few orders.
func smallConfig(t *testing.T) Config {
	c, err := Config{URL: pgtest.DirectURL(t), Rounds: 1, Duration: 100 * time.Millisecond, orders: 256, Aged: 100, Migrated: 400}.
		withDefaults()
	require.NoError(t, err)
	return c
}

// smallCrowd follows the larger stream in tests.
const smallCrowd = 10

// measured has a scenario's sample seen, or changed.
func measured(s *scenario, see func(*sample)) {
	run, open := s.run, s.open
	s.run = func(ctx context.Context, e *env) (m *sample, err error) {
		if run != nil {
			m, err = run(ctx, e)
		} else {
			var callers []caller
			if callers, err = open(ctx, e); err == nil {
				m, err = e.drive(ctx, callers)
			}
		}
		if err == nil {
			see(m)
		}
		return m, err
	}
}

// Run itself counts the rows after every round, and fails if they are not as
// many as were claimed; see the next test.
func TestEveryScenarioCommitsWhatItClaims(t *testing.T) {
	pgtest.Long(t)
	nats := natstest.Start(t)
	list := scenarios(smallCrowd, true)
	for _, s := range list {
		s.beside /= 100
		measured(s, func(m *sample) {
			if m.commands == 0 && s.name != pausedMany || m.latency.n == 0 { // that one is to have none
				t.Errorf("%s: %d commands and %d latencies were measured", s.name, m.commands, m.latency.n)
			}
			assert.Falsef(t, strings.Contains(s.name, "follow") && m.lag.n == 0, "%s: nothing was delivered", s.name)
			if m.stream != nil && (m.stream.lost != 0 || m.stream.disordered != 0 || m.stream.cut != 0 || m.stream.delivered == 0) {
				t.Errorf("%s: %+v", s.name, *m.stream)
			}
		})
	}
	var out strings.Builder
	c := smallConfig(t)
	c.NATS = nats.URL()
	require.NoError(t, run(t.Context(), c, list, &out))
	for _, s := range list {
		assert.Contains(t, out.String(), s.name, "in the report")
	}
	if t.Failed() {
		t.Log("\n" + out.String())
	}
}

func TestARunThatClaimsACommandTooManyFails(t *testing.T) {
	pgtest.Long(t)
	for _, name := range []string{floorOne, ceilingName, submitOne} {
		c := smallConfig(t)
		c.Only = regexp.MustCompile("^" + name + "$")
		list := scenarios(smallCrowd, false)
		for _, s := range list {
			measured(s, func(m *sample) { m.all++ })
		}
		err := run(t.Context(), c, list, &strings.Builder{})
		assert.ErrorContains(t, err, "do not hold what was claimed", name)
	}
}

func TestScenarios_FullTables(t *testing.T) {
	pgtest.Long(t)
	c := smallConfig(t)
	c.Large, c.Rounds = 20_000, 1
	var out strings.Builder
	require.NoError(t, Run(t.Context(), c, &out))
	for _, want := range []string{fullMost, fullAny, fullReplays, nothingDue, halfPurging, "the engine itself purged",
		"Loaded 20,000 commands"} {
		assert.Contains(t, out.String(), want, "in the report")
	}
	noSchema(t, c.URL)
	if t.Failed() {
		t.Log("\n" + out.String())
	}
}

// The ratios mean nothing unless all three write the same.
func TestFloorAndCeilingWriteRowsOfTheEnginesSize(t *testing.T) {
	c := smallConfig(t)
	c.orders = 1024 // so that versions have as many digits, however many commands one is ahead
	e, err := newEnv(t.Context(), c)
	require.NoError(t, err)
	defer func() {
		assert.NoError(t, e.db.close(context.Background()))
	}()
	sizes := map[string][4]float64{}
	for _, s := range scenarios(smallCrowd, false) {
		if s.name != floorOne && s.name != ceilingName && s.name != submitOne {
			continue
		}
		if _, err := e.round(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		var size [4]float64
		for i, from := range []string{"command x WHERE transition = 'flip'", "audit x WHERE transition = 'flip'",
			"outbox x WHERE transition = 'flip'", "instance x WHERE version > 1"} {
			require.NoError(t, e.db.admin.QueryRow(t.Context(),
				e.db.in("SELECT avg(pg_column_size(x.*)) FROM {pawl}."+from)).Scan(&size[i]))
		}
		sizes[s.name] = size
	}
	// What a transition writes is mostly these rows.
	if size := sizes[submitOne]; size[0] > 245 || size[1] > 600 || size[2] > 145 {
		t.Errorf("a transition's rows (command, audit, outbox) have grown to %.0f bytes", size)
	}
	for name, size := range sizes {
		for i := range size {
			if engine := sizes[submitOne][i]; size[i] < 0.98*engine || size[i] > 1.02*engine {
				t.Errorf("%s writes rows of %.0f bytes (command, audit, outbox, instance), the engine of %.0f", name, size, sizes[submitOne])
				break
			}
		}
	}
}

func TestBench_CleansUp(t *testing.T) {
	c := smallConfig(t)
	c.Only = regexp.MustCompile("^" + floorOne)
	require.NoError(t, Run(t.Context(), c, &strings.Builder{}))
	ctx, cancel := context.WithCancel(t.Context())
	c.Progress = func(string) { cancel() }
	c.Rounds = 2
	if err := Run(ctx, c, &strings.Builder{}); ctx.Err() == nil || err == nil {
		t.Errorf("a run whose context has ended returned %v", err)
	}
	noSchema(t, c.URL)

	d, err := openDatabase(t.Context(), c.URL, benchSchema)
	require.NoError(t, err)
	if err := d.admin.Close(t.Context()); err != nil { // as when a statement is interrupted
		t.Fatal(err)
	}
	require.NoError(t, d.close(t.Context()))
	noSchema(t, c.URL)
}

func noSchema(t *testing.T, url string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	var n int
	err = conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_namespace WHERE nspname IN ($1, $2)", benchSchema, fullSchema).Scan(&n)
	err = errors.Join(err, conn.Close(t.Context()))
	assert.Truef(t, err == nil && n == 0, "%d schemas are left (%v)", n, err)
}

func TestBadConfigsAreRefused(t *testing.T) {
	for _, c := range []Config{
		{},
		{URL: "postgres://", Rounds: -1},
		{URL: "postgres://", Duration: -1},
		{URL: "postgres://", Only: regexp.MustCompile("no such scenario")},
	} {
		err := Run(t.Context(), c, &strings.Builder{})
		assert.Truef(t, err != nil && strings.HasPrefix(err.Error(), "bench: Config."), "%+v: got %v", c, err)
	}
}

// The floor is known to be eight statements and one transaction for each
// command, so it tells whether the counters can be trusted.
func TestTheServersCountersAreThoseOfTheScenario(t *testing.T) {
	server, err := localpg.Start(t.Context(), localpg.Options{Ephemeral: true,
		Settings: map[string]string{"shared_preload_libraries": "pg_stat_statements", "autovacuum": "off"}}) // it has transactions too
	require.NoError(t, err)
	defer func() {
		assert.NoError(t, server.Stop())
	}()
	c := smallConfig(t)
	c.URL, c.Duration = server.URL(), 500*time.Millisecond
	e, err := newEnv(t.Context(), c)
	require.NoError(t, err)
	defer func() {
		assert.NoError(t, e.db.close(context.Background()))
	}()
	if e.db.statements == "" {
		t.Skip("this PostgreSQL has no pg_stat_statements")
	}
	m, err := e.round(t.Context(), floorScenario(floorOne, 1, false))
	require.NoError(t, err)
	// The set-up of the connection is a constant beside it.
	got := m.cost.statements - 8*m.all
	assert.Truef(t, got >= 0 && got <= 50, "%d statements for %d commands", m.cost.statements, m.all)
	// The bench's own queries grow with the duration.
	got = m.cost.transactions - m.all
	assert.Truef(t, got >= 0 && got <= 100+m.all/4, "%d transactions for %d commands", m.cost.transactions, m.all)
	perCommand := m.cost.wal / m.all
	assert.Truef(t, perCommand >= 1000 && perCommand <= 10_000, "%d bytes of WAL for each command", perCommand)
}
