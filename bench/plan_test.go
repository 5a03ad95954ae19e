package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/schema"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// plans are those that the server has really used, by statement. auto_explain
// sends each as a notice.
type plans struct {
	mu    sync.Mutex
	by    map[string]map[string]bool // the text, and each plan's shape
	wrong []error
}

// planNode is what is read of a plan.
type planNode struct {
	Type     string     `json:"Node Type"`
	Schema   string     `json:"Schema"`
	Relation string     `json:"Relation Name"`
	Index    string     `json:"Index Name"`
	Cond     string     `json:"Index Cond"`
	Plans    []planNode `json:"Plans"`
}

// value is a parameter in a condition, or what a plan made for it has instead.
var value = regexp.MustCompile(`(\$\d+|'[^']*'(::[a-z ]*[a-z])?)( COLLATE "C")?`)

// shape is a plan without its estimates: what is read how, in which order.
func (n *planNode) shape(b *strings.Builder, depth int) {
	fmt.Fprintf(b, "%s%s %s %s %s\n", strings.Repeat("  ", depth), n.Type, n.Relation, n.Index, value.ReplaceAllString(n.Cond, "?"))
	for i := range n.Plans {
		n.Plans[i].shape(b, depth+1)
	}
}

func (p *plans) notice(schemaName, message string) {
	_, raw, ok := strings.Cut(message, "plan:\n")
	if !ok {
		return
	}
	var plan struct {
		Text string `json:"Query Text"`
		Plan planNode
		JIT  *struct{ Functions int }
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := json.Unmarshal([]byte(raw), &plan); err != nil {
		p.wrong = append(p.wrong, err)
		return
	}
	if plan.JIT != nil {
		p.wrong = append(p.wrong, fmt.Errorf("compiled at every call, which takes longer than to run it: %s", plan.Text))
	}
	var b strings.Builder
	plan.Plan.shape(&b, 0)
	text := strings.ReplaceAll(plan.Text, pgx.Identifier{schemaName}.Sanitize()+".", "pawl.")
	if p.by[text] == nil {
		p.by[text] = map[string]bool{}
	}
	p.by[text][b.String()] = true
}

// have reports whether a statement was seen that begins so.
func (p *plans) have(begin string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return begins(p.by, begin)
}

func begins(by map[string]map[string]bool, begin string) bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(by)), func(text string) bool {
		return strings.HasPrefix(strings.TrimSpace(text),
			begin)
	})
}

// explained is a pool whose connections, and those that the engine makes like
// them, tell of every plan.
func explained(t *testing.T, url, schemaName string) (*pgxpool.Pool, *plans) {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	require.NoError(t, err)
	p := &plans{by: map[string]map[string]bool{}}
	config.ConnConfig.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { p.notice(schemaName, n.Message) }
	maps.Copy(config.ConnConfig.RuntimeParams, map[string]string{
		"session_preload_libraries": "auto_explain", "auto_explain.log_min_duration": "0", "auto_explain.log_level": "notice",
		"auto_explain.log_format": "json", "auto_explain.log_nested_statements": "on",
	})
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool, p
}

// hotStatements runs what a busy engine runs, on a schema, and returns the plans.
// The orders from the first on are not there yet.
func hotStatements(t *testing.T, url, schemaName string, first int) map[string]map[string]bool {
	t.Helper()
	ctx := t.Context()
	pool, seen := explained(t, url, schemaName)
	eng, err := engine.New(engine.Config{Pool: pool, Schema: schemaName, Workflows: []workflow.Source{definition},
		Log:       slog.New(slog.DiscardHandler),
		Retention: engine.RetentionConfig{Off: true}})
	if err == nil {
		err = eng.Start(ctx)
	}
	require.NoError(t, err)
	defer eng.Stop(context.Background())
	must := func(err error) {
		t.Helper()
		require.NoError(t, err)
	}
	submit := func(c transitions.Command, replayed bool) {
		t.Helper()
		r, err := eng.Submit(ctx, c)
		must(check(r, err, replayed))
	}
	many := func(cs []transitions.Command, replayed bool) {
		t.Helper()
		for _, r := range eng.SubmitMany(ctx, cs) {
			must(check(r.Receipt, r.Err, replayed))
		}
	}
	var places, flips []transitions.Command
	for i := range 50 {
		o := orderAt(first + i)
		places, flips = append(places, placeAt(first+i)), append(flips, change(flipping, &o, commandKey(1, i)))
	}
	many(places, false)
	many(flips, false)
	o := orderAt(first + 50)
	submit(placeAt(first+50), false)
	for n := range oftenEnough {
		many(places, true)
		many(flips, true)
		submit(change(flipping, &o, commandKey(2, n)), false)
		submit(change(flipping, &o, commandKey(2, n)), true)
		must(pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			r, err := eng.SubmitTx(ctx, tx, change(flipping, &o, commandKey(3, n)))
			return check(r, err, false)
		}))
		r, err := eng.Submit(ctx, change(asking, &o, commandKey(4, n)))
		if err == nil && r.InFlight() {
			r, err = eng.Await(ctx, transitions.Ref{Tenant: tenant, Scope: r.Record.Scope, Key: r.Record.Key})
		}
		must(check(r, err, r.Replayed)) // Await replays
		read(t, eng, pool, schemaName, &o)
	}
	await.Eventually(t, "the node polls, which nobody asks for", func() bool { return seen.have(lookBegins) })
	seen.mu.Lock()
	defer seen.mu.Unlock()
	require.True(t, len(seen.wrong) == 0, seen.wrong)
	return seen.by
}

// oftenEnough is how often a statement is run: after five times a connection may
// keep one plan for all parameters.
const oftenEnough = 7

// read reads what callers and operators read, and purges what is due, if anything
// is.
func read(t *testing.T, eng *engine.Engine, pool *pgxpool.Pool, schemaName string, o *order) {
	t.Helper()
	ctx := t.Context()
	_, err := eng.Read().Instance(ctx, tenant, o.id)
	if err == nil {
		_, err = eng.Read().InstanceByKey(ctx, tenant, workflowName, o.key)
	}
	if err == nil {
		_, err = eng.Read().Instances(ctx, inspect.Filter{Workflow: workflowName, States: []workflow.State{stateHeld}, Limit: 10})
	}
	if err == nil {
		_, err = eng.Read().History(ctx, tenant, o.id, 0, 10)
	}
	if err == nil {
		_, err = eng.Read().Command(ctx, transitions.Ref{Tenant: tenant, Scope: workflowName + ":" + o.id.String(), Key: commandKey(2, 0)})
	}
	if err == nil {
		var head int64
		head, err = eng.Read().Head(ctx, tenant)
		f := eng.Read().Follow(tenant, max(head-100, 0))
		defer f.Close()
		if err == nil {
			_, err = f.Next(ctx)
		}
	}
	if err == nil {
		_, err = pool.Exec(ctx, schema.In(schemaName, "SELECT {pawl}.purge(100)"))
	}
	require.NoError(t, err)
}

// A plan is right for every size of the tables, or it is wrong for some: so all
// that an engine runs has the same on empty and on full tables, and none of it
// reads a full table as a whole. These are the plans that the server has really
// used; what statements may do at all is tested where they are. PAWL_FULL=1 takes
// larger tables.
func TestStatementPlans(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	commands := 30_000
	if os.Getenv("PAWL_FULL") != "" {
		commands = 100_000
	}
	l := load(t, commands)
	var there bool
	const modules = "SELECT count(*) > 0 FROM pg_available_extension_versions WHERE name = 'pg_stat_statements'"
	require.NoError(t, l.pool.QueryRow(t.Context(), modules).Scan(&there))
	if !there {
		t.Skip("this PostgreSQL lacks its own modules, so also auto_explain")
	}
	_, err := schema.Migrate(t.Context(), l.pool, schema.Default)
	require.NoError(t, err)
	// Statistics that autovacuum collects while the statements run belong to tables that are neither empty nor full.
	for _, name := range []string{schema.Default, l.schema} {
		_, err := l.pool.Exec(t.Context(), withoutAutovacuum(name))
		require.NoError(t, err)
	}
	empty := hotStatements(t, l.url, schema.Default, 0)
	full := hotStatements(t, l.url, l.schema, l.past.instances)
	for _, begin := range []string{"INSERT INTO pawl.instance", "INSERT INTO pawl.command", "UPDATE pawl.log", "WITH i AS (INSERT",
		"WITH i AS (UPDATE", "WITH changed AS", "WITH settled AS", "SELECT u.ord", "WITH past AS MATERIALIZED", "SELECT i.id", lookBegins} {
		assert.Truef(t, begins(full, begin), "no statement was seen that begins with %q", begin)
	}
	readsOne := func(text string) bool { return strings.Contains(text, " FROM pawl.command c LEFT JOIN") }
	assert.True(t, slices.ContainsFunc(slices.Collect(maps.Keys(full)), readsOne), "the statement was not seen that reads one command")
	for _, text := range slices.Sorted(maps.Keys(full)) {
		after := strings.Join(slices.Sorted(maps.Keys(full[text])), "or\n")
		assert.Falsef(t, wholeTable.MatchString(after), "a full table is read as a whole: %s\n%s", text, after)
		// The look is planned each time, for a table of the size that it has then.
		if strings.HasPrefix(strings.TrimSpace(text), lookBegins) || len(empty[text]) == 0 {
			continue
		}
		before := strings.Join(slices.Sorted(maps.Keys(empty[text])), "or\n")
		assert.Equalf(t, alike(after), alike(before), "%s\nis, on empty tables,\n%s\nand on full ones\n%s", text, before, after)
	}
}

const lookBegins = "SELECT clock_timestamp(), least("

var (
	wholeTable = regexp.MustCompile(`(Seq Scan|Bitmap Heap Scan) (instance|command|audit|outbox|log)`)
	weeks      = regexp.MustCompile(`(Index Scan outbox_)\d+w\d+ outbox_\d+w\d+(_pkey .*)(\n\s*Index Scan outbox_\d+w\d+ .*)*`)
)

// alike makes no difference how many weeks of the outbox there are: the full tables may have one that is over.
func alike(shapes string) string { return weeks.ReplaceAllString(shapes, "$1$2") }
