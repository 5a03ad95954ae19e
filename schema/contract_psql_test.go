package schema_test

import (
	"bytes"
	"os"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/localpg"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/outbox/relay"
	"github.com/pawlhq/pawl/outbox/sink/file"
)

const page = "../docs/sql.md"

// block is an example of the page with psql's output.
type block struct{ sql, want string }

var fence = regexp.MustCompile("(?ms)^```(sql|sql rights|text)\n(.*?)^```$")

// examples returns the examples and the grants of the page.
func examples(t testing.TB) (list []block, rights string) {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	for _, m := range fence.FindAllStringSubmatch(pgtest.Documented(string(text)), -1) {
		switch m[1] {
		case "sql":
			list = append(list, block{sql: m[2]})
		case "sql rights":
			rights = m[2]
		default:
			list[len(list)-1].want = m[2]
		}
	}
	require.Truef(t, len(list) >= 10 && rights != "", "the page has %d examples and the rights %q", len(list), rights)
	return list, rights
}

// psql runs a script and returns its output with errors, without trailing spaces.
func psql(t testing.TB, pool *pgxpool.Pool, script string) string {
	t.Helper()
	name := "psql"
	if dir, _, err := localpg.Find(); err == nil {
		if _, err := osexec.LookPath(filepath.Join(dir, name)); err == nil {
			name = filepath.Join(dir, name)
		}
	}
	if _, err := osexec.LookPath(name); err != nil {
		t.Skipf("psql, with which this test runs the examples, is not on this machine: %v", err)
	}
	command := osexec.CommandContext(t.Context(), name, "-X", "-q", "-v", "SHOW_CONTEXT=never", "-f", "-",
		pgtest.Direct(t, pool.Config().ConnString()))
	command.Stdin = strings.NewReader(script)
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	require.NoError(t, command.Run(), &out)
	return trailing.ReplaceAllString(sourced.ReplaceAllString(out.String(), ""), "")
}

var (
	trailing = regexp.MustCompile(`(?m)[ \t]+$`)
	sourced  = regexp.MustCompile(`(?m)^psql:<stdin>:\d+: `)
)

func TestSQLPageExamples(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	var received bytes.Buffer
	e := started(t, pool, func(c *engine.Config) { c.Sinks = []relay.Sink{{Name: "main", To: file.NewWriter(&received)}} })
	list, _ := examples(t)
	for _, b := range list {
		if strings.Contains(b.sql, "pawl.outbox_cursor") {
			upToDate(t, e)
		}
		assert.Equalf(t, b.want, psql(t, pool, b.sql), "%s\ngot\n \nwant", b.sql)
	}

	// The engine knows the order that was placed and shipped in SQL alone.
	r, err := e.Submit(t.Context(), place("checkout-7", "k-9"))
	assert.Truef(t, err == nil && r.Replayed && r.Status == 201 && r.Position == 1, "got %+v, %v", r, err)
	v := verified(t, e)
	assert.Truef(t, v.Instances == 1 && v.Entries == 2, "got %+v", v)
	reader := e.Read().Follow("", 0)
	defer reader.Close()
	batch, err := reader.Next(t.Context())
	require.Truef(t, err == nil && len(batch.Events) == 3 && strings.Contains(string(batch.Events[1].CloudEvent), `"type":"order.welcome"`),
		"got %+v, %v", batch, err)
	upToDate(t, e)
	var log []byte
	for i := range batch.Events {
		log = append(append(log, batch.Events[i].CloudEvent...), '\n')
	}
	e.Stop(t.Context())
	assert.Equalf(t, string(log), received.String(), "the sink got\n%swant\n%s", &received, log)
}

// upToDate waits until the engine's sink has received everything.
func upToDate(t testing.TB, e *engine.Engine) {
	t.Helper()
	await.Eventually(t, "the sink has everything", func() bool {
		list, err := e.Admin().Sinks(t.Context(), "")
		require.Truef(t, err == nil && len(list) == 1, "%+v, %v", list, err)
		return list[0].Lag == 0
	})
}

func TestSQLPageRightsAreMinimal(t *testing.T) {
	t.Parallel()
	pool, e := served(t)
	_, rights := examples(t)
	role := "pawltest_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	exec(t, pool, "CREATE ROLE "+role)
	defer exec(t, pool, "DROP OWNED BY "+role+"; DROP ROLE "+role)
	everything := func() error {
		_, err := pool.Exec(t.Context(), `BEGIN; SET LOCAL ROLE `+role+`;
			SELECT pawl.transition('order:place', 'k', c.attempt, 0, 'placed', '{}', business_key => 'c:k')
				FROM pawl.claim('order:place', 'k', pawl.fingerprint('order', 'place'), 'order', 'place') AS c;
			SELECT pawl.transition('s', 'k', c.attempt, 1, 'shipped', '{}')
				FROM pawl.claim('s', 'k', sha256('x'), 'order', 'ship', pawl.instance_id('order', 'c:k')) AS c;
			SELECT pawl.fail('s', 'l', c.attempt, 'x') FROM pawl.claim('s', 'l', sha256('x')) AS c;
			SELECT pawl.succeed('s', 'l', c.attempt) FROM pawl.claim('s', 'l', sha256('x')) AS c;
			SELECT pawl.consume('c', 'm', sha256('x')); SELECT pawl.consume('c', 'm', sha256('x'));
			SELECT pawl.lock('r'); SELECT pawl.purge(moment => now() + interval '2 days'); COMMIT`)
		return err
	}
	grants := strings.Split(strings.TrimSpace(strings.ReplaceAll(rights, "shop", role)), "\n")
	for left := range grants {
		exec(t, pool, "DROP OWNED BY "+role)
		for i, grant := range grants {
			if i != left {
				exec(t, pool, grant)
			}
		}
		if e := raised(t, everything(), "42501"); e.Code == "" {
			t.Errorf("it does without %s", grants[left])
		}
	}
	exec(t, pool, grants[len(grants)-1])
	require.NoError(t, everything())
	v := verified(t, e)
	assert.Equalf(t, int64(2), v.Entries, "got %+v", v)
}
