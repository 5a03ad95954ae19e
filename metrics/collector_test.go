package metrics_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/metrics"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

type note struct{}

func notes() workflow.Source {
	none := func(*workflow.Call, *note, workflow.None) error { return nil }
	return workflow.Define("note", 1, workflow.Start("write", "written", none)).Final("written")
}

// started returns a running engine.
func started(t *testing.T, more ...workflow.Source) *engine.Engine {
	t.Helper()
	pool := pgtest.Pool(t)
	for _, sql := range []string{`INSERT INTO pawl.outbox_sink (name, failures) VALUES ('crm', 3)`,
		`INSERT INTO pawl.scope_day SELECT t, s, n, now(), 8, 2, 0, 0, 0 FROM (VALUES ('a', 'note:write', false), ('b', 'note:write', false),
			('b', 'desk 4', true)) AS v(t, s, n)`,
		`SELECT pawl.claim('report', '1', sha256('1'), lease => '1 microsecond')`} {
		_, err := pool.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
	e, err := engine.New(engine.Config{Pool: pool, Workflows: append(more, notes()), Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	require.NoError(t, e.Start(t.Context()))
	t.Cleanup(func() { e.Stop(context.Background()) })
	return e
}

func write(t *testing.T, e *engine.Engine, tenant, scope, key string) {
	t.Helper()
	_, err := e.Submit(t.Context(), transitions.Command{Tenant: tenant, Workflow: "note", Transition: "write", Key: key,
		Options: transitions.Options{Scope: scope}})
	require.NoError(t, err)
}

// A value that falls to 0 is exported as 0. If it were missing, sums and alerts would use its last value.
func TestEmptyKindIsExportedAsZero(t *testing.T) {
	none := func(*workflow.Call, *note, workflow.None) error { return nil }
	e := started(t, workflow.Define("draft", 1, workflow.Start("begin", "begun", none),
		workflow.On("send", workflow.From("begun"), "sent", none)).Final("sent"))
	c := metrics.New(e.Admin(), metrics.Config{Every: time.Nanosecond, Timeout: time.Minute})
	do := func(transition string, instance uuid.UUID) uuid.UUID {
		t.Helper()
		r, err := e.Submit(t.Context(), transitions.Command{Workflow: "draft", Transition: transition, Key: transition, Instance: instance})
		require.NoError(t, err)
		return r.Instance
	}
	draft := do("begin", uuid.Nil)
	testutil.CollectAndCount(c)
	do("send", draft)
	want := `
# HELP pawl_instances Instances by workflow, version of the definition, state, and whether it is final. Up to 10,000 of a kind are counted, fewer with many tenants; larger numbers are estimates of the planner. A kind that this process has seen stays with 0 when it has no instances.
# TYPE pawl_instances gauge
pawl_instances{definition="1",open="true",state="begun",workflow="draft"} 0
pawl_instances{definition="1",open="false",state="sent",workflow="draft"} 1
# HELP pawl_instances_estimated How many of the values of pawl_instances are estimates.
# TYPE pawl_instances_estimated gauge
pawl_instances_estimated 0
`
	// A slow read is not repeated at once.
	await.Eventually(t, "what is read says so", func() bool {
		return testutil.CollectAndCompare(c, strings.NewReader(want), "pawl_instances", "pawl_instances_estimated") == nil
	})
}

func TestMetricsOfEngine(t *testing.T) {
	e := started(t)
	c := metrics.New(e.Admin(), metrics.Config{Timeout: time.Minute})
	write(t, e, "a", "", "1")
	write(t, e, "a", "", "1")
	write(t, e, "b", "", "1")
	write(t, e, "b", "desk 4", "1")
	write(t, e, "b", "desk 5", "1")
	want := `
# HELP pawl_scope_commands_total Attempts by scope (the transition of a default scope, or \"named\" for scopes that callers chose) and outcome: new, replayed, active, mismatched, expired. All but new are duplicates that were suppressed.
# TYPE pawl_scope_commands_total counter
pawl_scope_commands_total{outcome="active",scope="named"} 0
pawl_scope_commands_total{outcome="active",scope="note:write"} 0
pawl_scope_commands_total{outcome="expired",scope="named"} 0
pawl_scope_commands_total{outcome="expired",scope="note:write"} 0
pawl_scope_commands_total{outcome="mismatched",scope="named"} 0
pawl_scope_commands_total{outcome="mismatched",scope="note:write"} 0
pawl_scope_commands_total{outcome="new",scope="named"} 2
pawl_scope_commands_total{outcome="new",scope="note:write"} 2
pawl_scope_commands_total{outcome="replayed",scope="named"} 0
pawl_scope_commands_total{outcome="replayed",scope="note:write"} 1
# HELP pawl_sink_failures Consecutive failed attempts of the receiver as a whole; 0 when it accepts events.
# TYPE pawl_sink_failures gauge
pawl_sink_failures{sink="crm"} 3
# HELP pawl_sink_lag_transitions Transitions that the sink has not received, over all tenants.
# TYPE pawl_sink_lag_transitions gauge
pawl_sink_lag_transitions{sink="crm"} 4
# HELP pawl_scope_commands_recorded Attempts by scope and outcome on all nodes in the last 30 days, recorded in the database once a minute.
# TYPE pawl_scope_commands_recorded gauge
pawl_scope_commands_recorded{outcome="active",scope="named"} 0
pawl_scope_commands_recorded{outcome="active",scope="note:write"} 0
pawl_scope_commands_recorded{outcome="expired",scope="named"} 0
pawl_scope_commands_recorded{outcome="expired",scope="note:write"} 0
pawl_scope_commands_recorded{outcome="mismatched",scope="named"} 0
pawl_scope_commands_recorded{outcome="mismatched",scope="note:write"} 0
pawl_scope_commands_recorded{outcome="new",scope="named"} 8
pawl_scope_commands_recorded{outcome="new",scope="note:write"} 16
pawl_scope_commands_recorded{outcome="replayed",scope="named"} 2
pawl_scope_commands_recorded{outcome="replayed",scope="note:write"} 4
# HELP pawl_keys Keys by the status of their command. Commands in flight are counted up to 10,000 of each kind; finished ones are estimated on large tables.
# TYPE pawl_keys gauge
pawl_keys{status="expired"} 0
pawl_keys{status="failed_final"} 0
pawl_keys{status="failed_retryable"} 0
pawl_keys{status="pending"} 0
pawl_keys{status="processing"} 1
pawl_keys{status="succeeded"} 4
# HELP pawl_keys_lapsed Claims of callers of the SQL contract that have expired.
# TYPE pawl_keys_lapsed gauge
pawl_keys_lapsed 1
# HELP pawl_keys_oldest_stale_seconds Time since the first of these leases expired; 0 for none.
# TYPE pawl_keys_oldest_stale_seconds gauge
pawl_keys_oldest_stale_seconds 0
# HELP pawl_keys_stale Commands whose lease has expired and that no node has taken over.
# TYPE pawl_keys_stale gauge
pawl_keys_stale 0
`
	assert.NoError(t, testutil.CollectAndCompare(c, strings.NewReader(want), "pawl_scope_commands_total", "pawl_keys",
		"pawl_sink_lag_transitions",
		"pawl_sink_failures", "pawl_keys_stale", "pawl_keys_oldest_stale_seconds", "pawl_keys_lapsed", "pawl_scope_commands_recorded"))
}

// Names and units follow the conventions, and the documentation matches a scrape.
func TestMetricsFollowConventionsAndTable(t *testing.T) {
	e := started(t, orders())
	write(t, e, "", "", "1")
	pay(t, e, "card")
	requests := metrics.NewRequests()
	requests.Observe(http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	refusals := metrics.NewRefusals()
	refusals.Count("expired")
	refusals.Keys = func() metrics.TokenKeys { return metrics.TokenKeys{Keys: 1, Reads: 1, Read: time.Now()} }
	refusals.APIKeys = func() metrics.APIKeys { return metrics.APIKeys{Known: 1, Lookups: 1, Looks: 1} }
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(metrics.New(e.Admin(), metrics.Config{Timeout: time.Minute}), requests, refusals,
		metrics.Connections(func() (c metrics.ConnectionStats) { return c }), metrics.Memory(func() (m metrics.MemoryStats) { return m }))
	problems, err := testutil.GatherAndLint(r)
	require.NoError(t, err)
	assert.Empty(t, problems)
	families, err := r.Gather()
	require.NoError(t, err)
	var given, listed []string
	for _, f := range families {
		given = append(given, f.GetName())
	}
	for _, m := range metrics.Table() {
		listed = append(listed, m.Name)
	}
	assert.ElementsMatch(t, listed, given)
}

// flaky is an engine whose database fails intermittently.
type flaky struct {
	*engine.Admin
	reads, standings int
	err              error
}

func (f *flaky) Retention(ctx context.Context) (inspect.Retention, error) {
	f.standings++
	return f.Admin.Retention(ctx)
}

func (f *flaky) Keys(ctx context.Context, _ string) (inspect.Keys, error) {
	f.reads++
	if _, bounded := ctx.Deadline(); !bounded {
		return inspect.Keys{}, errors.New("nobody bounds the read")
	}
	return inspect.Keys{Due: int64(f.reads)}, f.err
}

func TestReadsAreCachedAndFailuresCounted(t *testing.T) {
	f := &flaky{Admin: started(t).Admin()}
	c := metrics.New(f, metrics.Config{Every: time.Hour, Timeout: time.Minute, Log: slog.New(slog.DiscardHandler)})
	for range 10 {
		testutil.CollectAndCount(c)
	}
	assert.Equal(t, 1, f.reads, "ten scrapes read times")
	// anew scrapes until the keys have been read again, which is delayed after a slow read, and returns the number of the given metrics.
	anew := func(names ...string) (n int) {
		t.Helper()
		for before, limit := f.reads, time.Now().Add(3*time.Minute); f.reads == before; {
			require.False(t, time.Now().After(limit), "the keys are not read any more")
			n = testutil.CollectAndCount(c, names...)
		}
		return n
	}
	f.standings = 0
	c = metrics.New(f, metrics.Config{Every: time.Nanosecond, RetentionEvery: time.Hour, Timeout: time.Minute})
	for range 10 {
		anew()
	}
	assert.Equal(t, 1, f.standings, "scrapes that read keys ten times read how retention stands times")
	f.err = errors.New("gone")
	c = metrics.New(f, metrics.Config{Every: time.Hour, Timeout: time.Minute, Log: slog.New(slog.DiscardHandler)})
	want := `
# HELP pawl_scrape_read_failures_total Failed reads of the database for a scrape; their metrics are missing.
# TYPE pawl_scrape_read_failures_total counter
pawl_scrape_read_failures_total{of="counts"} 0
pawl_scrape_read_failures_total{of="keys"} 1
pawl_scrape_read_failures_total{of="migrations"} 0
pawl_scrape_read_failures_total{of="retention"} 0
pawl_scrape_read_failures_total{of="sinks"} 0
pawl_scrape_read_failures_total{of="versions"} 0
`
	assert.NoError(t, testutil.CollectAndCompare(c, strings.NewReader(want), "pawl_scrape_read_failures_total", "pawl_keys_due"))
	c = metrics.New(f, metrics.Config{Every: time.Nanosecond, Timeout: time.Minute, Log: slog.New(slog.DiscardHandler)})
	assert.Equal(t, 0, anew("pawl_keys_due"), "the database is gone, and the metrics are there")
	f.err = nil
	assert.Equal(t, 1, anew("pawl_keys_due"), "the metrics do not come back with the database")
}

func TestRequestsAreCountedByRouteAndStatus(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /things/{id}", func(w http.ResponseWriter, r *http.Request) {
		switch r.PathValue("id") {
		case "1":
			_, _ = io.WriteString(w, "one")
		case "stream":
			w.Header().Set("Content-Type", "text/event-stream")
			assert.NoError(t, http.NewResponseController(w).Flush())
		case "socket":
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\n\r\n")
			_ = conn.Close()
		default:
			w.WriteHeader(http.StatusGone)
		}
	})
	requests := metrics.NewRequests()
	var served sync.WaitGroup
	observed := requests.Observe(mux)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		served.Add(1)
		defer served.Done()
		observed.ServeHTTP(w, r)
	}))
	defer s.Close()
	for _, path := range []string{"/things/1", "/things/1", "/things/2", "/things/stream", "/things/socket", "/nothing"} {
		r, err := s.Client().Get(s.URL + path)
		require.NoError(t, err)
		_ = r.Body.Close()
	}
	served.Wait()
	want := `
# HELP pawl_http_requests_total Answered requests, by route pattern and status.
# TYPE pawl_http_requests_total counter
pawl_http_requests_total{code="101",route="GET /things/{id}"} 1
pawl_http_requests_total{code="200",route="GET /things/{id}"} 3
pawl_http_requests_total{code="404",route="none"} 1
pawl_http_requests_total{code="410",route="GET /things/{id}"} 1
`
	assert.NoError(t, testutil.CollectAndCompare(requests, strings.NewReader(want), "pawl_http_requests_total"))
	assert.Equal(t, 2, testutil.CollectAndCount(requests, "pawl_http_request_duration_seconds"), "routes have durations")
}
