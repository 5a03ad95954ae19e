package doctor

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/localpg"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/schema"
)

func TestDoctor_HealthyDatabase(t *testing.T) {
	server, err := localpg.Start(t.Context(), localpg.Options{Ephemeral: true, Settings: map[string]string{"fsync": "on"}})
	require.NoError(t, err)
	defer func() { assert.NoError(t, server.Stop()) }()
	pool, err := pgxpool.New(t.Context(), server.URL())
	require.NoError(t, err)
	defer pool.Close()
	_, err = schema.Migrate(t.Context(), pool, schema.Default)
	require.NoError(t, err)
	e, err := engine.New(engine.Config{Pool: pool, Workflows: orders()})
	require.NoError(t, err)
	require.NoError(t, e.Start(t.Context()))
	defer e.Stop(context.Background())
	await.Eventually(t, "the node does retention", func() bool {
		s, err := e.Admin().Retention(t.Context())
		return err == nil && s.Node != ""
	})
	r, err := Examine(t.Context(), Config{URL: server.URL(), Schema: schema.Default, Workflows: orders()})
	require.NoError(t, err)
	wants(t, r)
	for i, c := range Checks {
		assert.Equal(t, c.Name, r.Findings[i].Check)
		assert.NotEmpty(t, r.Findings[i].Found, c.Name)
		assert.NotEmpty(t, c.Looks, c.Name)
		assert.NotEmpty(t, c.Warning+c.Problem, c.Name)
		assert.True(t, c.Name != "durability" || r.Findings[i].Severity == OK)
	}
	assert.NotEmpty(t, r.Server)
	assert.NotEmpty(t, r.Database)
	assert.NotEmpty(t, r.Role)
	assert.Equal(t, schema.Default, r.Schema)
	assert.Zero(t, r.Problems+r.Unknown)
}

func TestDoctor_NoConnection(t *testing.T) {
	url := pgtest.DirectURL(t)
	config, err := pgx.ParseConfig(url)
	require.NoError(t, err)
	for _, c := range []struct{ url, found, do string }{
		{"postgres://127.0.0.1:1/x", "the database does not answer: ", "check that the server runs"},
		{strings.Replace(url, "/"+config.Database, "/"+config.Database+"x", 1), "does not exist", "use the name of an existing database"},
		{strings.Replace(url, config.Password, "sesame", 1), "password authentication failed", "correct the role or the password"},
	} {
		r, err := Examine(t.Context(), Config{URL: c.url, Schema: schema.Default, Workflows: orders()})
		require.NoError(t, err)
		wants(t, r, "problem connection")
		f := r.Findings[0]
		assert.Contains(t, f.Found, c.found)
		assert.Contains(t, f.Do, c.do)
		assert.NotRegexp(t, `sesame|\n|(?s)dial error.*dial error`, f.Found)
	}
	_, err = Examine(t.Context(), Config{URL: "postgres://%", Schema: schema.Default, Workflows: orders()})
	assert.Error(t, err)
}

// A table that every check reads is locked. The doctor finishes, lists the checks that it could not do, and continues with the others.
func TestDoctor_SlowDatabase(t *testing.T) {
	p := newPatient(t, pgtest.DirectURL(t))
	p.begin(`LOCK TABLE pawl.command, pawl.definition IN ACCESS EXCLUSIVE MODE`)
	p.limits.check = 2 * time.Second
	r := p.examine()
	got := names(r)
	for _, want := range []string{"unknown in-flight", "unknown definitions"} {
		assert.Contains(t, got, want)
	}
	for _, f := range r.Findings {
		if f.Check == "in-flight" {
			assert.Regexp(t, `the session \d+ of \S+ \(\S.*\) has locked the table command against readers`, f.Found)
		}
	}
	assert.NotContains(t, strings.Join(got, "\n"), "problem")
	assert.Equal(t, OK, r.Findings[0].Severity)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Examine(gone, p.config)
	assert.Error(t, err)
	f := new(exam).notSeen(gone, gone.Err())
	assert.Equal(t, "the time limit ended before this check", f.Found)
	assert.Equal(t, Unknown, f.Severity)
}

var rightsBlock = regexp.MustCompile("(?ms)^```sql rights\n(.*?)^```$")

// The rights on the page suffice for all checks.
func TestDoctor_MonitoringRole(t *testing.T) {
	page, err := os.ReadFile("../../docs/doctor.md")
	require.NoError(t, err)
	grants := rightsBlock.FindSubmatch(page)
	require.NotNil(t, grants, "the page has no rights")
	p := newPatient(t, pgtest.DirectURL(t))
	p.exec(`CREATE ROLE watcher LOGIN PASSWORD 'w'; ALTER ROLE watcher SET default_transaction_read_only = on`)
	p.after(`DROP OWNED BY watcher`, `DROP ROLE watcher`)
	p.config.URL = p.as("watcher", "w")

	r := p.examine()
	assert.True(t, slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Do == `GRANT pg_monitor TO "watcher"` }))
	assert.Subset(t, names(r), []string{"unknown transactions", "unknown schema"})
	p.exec(pgtest.Documented(string(grants[1])))
	r = p.examine()
	wants(t, r)
	assert.Equal(t, "watcher", r.Role)
}

// A role that writes needs all rights of a node; the remedy that is named gives them.
func TestRights_Missing(t *testing.T) {
	p := newPatient(t, pgtest.DirectURL(t))
	p.exec(`CREATE ROLE shop LOGIN PASSWORD 's'; GRANT pg_monitor TO shop`)
	p.after(`DROP OWNED BY shop`, `DROP ROLE shop`)
	p.config.URL = p.as("shop", "s")
	_, err := schema.Grant(t.Context(), p.pool, schema.Default, "shop")
	require.NoError(t, err)
	wants(t, p.examine())
	p.exec(`REVOKE UPDATE ON pawl.audit FROM shop`, `REVOKE EXECUTE ON FUNCTION pawl.make_partition FROM shop`)
	r := p.examine()
	wants(t, r, "problem rights EXECUTE on a function", "problem rights UPDATE on audit")
	for _, f := range r.Findings {
		assert.True(t, f.Check != "rights" || f.Do == `as the owner of the tables, run "migrate grants shop"`, f)
	}
	p.exec(`REVOKE ALL ON ALL TABLES IN SCHEMA pawl FROM shop`, `GRANT SELECT ON ALL TABLES IN SCHEMA pawl TO shop`)
	assert.NotContains(t, strings.Join(names(p.examine()), "\n"), "rights") // a role that only reads
	p.exec(`GRANT UPDATE ON pawl.leadership TO shop`)
	assert.Contains(t, names(p.examine()), "problem rights others")
}

// as is the connection string of another role.
func (p *patient) as(role, password string) string {
	config, err := pgx.ParseConfig(p.url)
	require.NoError(p, err)
	return strings.Replace(p.url, config.User+":"+config.Password+"@", role+":"+password+"@", 1)
}

// Settings that trade durability for speed, as on the server of these tests.
func TestDurability(t *testing.T) {
	var got []string
	for _, f := range newPatient(t, pgtest.DirectURL(t)).examine().Findings {
		if f.Check == "durability" {
			got = append(got, fmt.Sprint(f.Severity, " ", f.About))
		}
	}
	assert.Equal(t, []string{"problem fsync", "problem full_page_writes", "warning synchronous_commit"}, got)
}

func TestJudgeVersion(t *testing.T) {
	day := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		number  int
		version string
		today   time.Time
		want    Severity
		says    string
	}{
		{130015, "13.15", day, Problem, "older than 14"},
		{140003, "14.3", day, Problem, "may lack rows"},
		{140012, "14.12", day, OK, "until 2026-11-12; before 15 every role"},
		{140012, "14.12", day.AddDate(1, 0, 0), Warning, "unsupported since 2026-11-12"},
		{180001, "18.1", day, OK, "PostgreSQL 18.1, which is supported until 2030-11-14"},
		{190000, "19beta1", day, Warning, "newer than the versions that this program was tested on"},
	} {
		fine, found := judgeVersion(c.number, c.version, c.today)
		got := Finding{Severity: OK, Found: fine}
		if len(found) > 0 {
			got = found[0]
		}
		assert.Equal(t, c.want, got.Severity, c.version)
		assert.Contains(t, got.Found, c.says)
	}
}

func TestFigures(t *testing.T) {
	for got, want := range map[string]string{
		bytes(1000): "1000 bytes", bytes(1536): "1.5 kB", bytes(64 << 20): "64 MB", bytes(3 << 40): "3 TB",
		span(1500 * time.Microsecond): "1.5 ms", span(90 * time.Second): "1 min 30 s", span(-3 * time.Minute): "3 min",
		span(5 * time.Second): "5 s",
		span(25 * time.Hour):  "25 h", span(49 * time.Hour): "2 d 1 h",
	} {
		assert.Equal(t, want, got)
	}
	for text, want := range map[string]time.Duration{"0": 0, "250": 250 * time.Millisecond, "5s": 5 * time.Second, "1.5min": 90 * time.Second,
		"2 h": 2 * time.Hour} {
		got, ok := timeOf(text)
		assert.Truef(t, ok && got == want, "%s is %s, %t", text, got, ok)
	}
	_, ok := timeOf("4 elephants")
	assert.False(t, ok)
}
