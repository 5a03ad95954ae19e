package api_test

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// asked takes note of what is asked of the database, with its parameters.
type asked struct {
	mu   sync.Mutex
	list []query
}

type query struct {
	sql  string
	args []any
}

func (a *asked) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	args := slices.DeleteFunc(slices.Clone(d.Args), func(arg any) bool {
		switch arg.(type) {
		case pgx.QueryExecMode, pgx.QueryResultFormats: // how, not what
			return true
		}
		return false
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	a.list = append(a.list, query{d.SQL, args})
	return ctx
}

func (a *asked) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// take returns what was asked since the last time.
func (a *asked) take() []query {
	a.mu.Lock()
	defer a.mu.Unlock()
	defer func() { a.list = nil }()
	return a.list
}

// bystander is a second interface of a server's database, with an engine that does nothing by itself, so that only what
// requests ask is asked.
func (s *server) bystander(t testing.TB) (*api.API, *asked) {
	t.Helper()
	config, err := pgxpool.ParseConfig(s.pool.Config().ConnString())
	require.NoError(t, err)
	notes := &asked{}
	config.ConnConfig.Tracer = notes
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	e, err := engine.New(engine.Config{Pool: pool, Workflows: []workflow.Source{parcel, s.courier.workflow()}})
	require.NoError(t, err)
	a, err := api.New(e, api.Config{})
	require.NoError(t, err)
	return a, notes
}

// The same statements run for an id of another tenant and for an unknown id, and read as many pages: neither the text nor the time of an
// answer tells them apart.
func TestForeignIDLooksUnknown(t *testing.T) {
	s := newServer(t)
	var foreign, unknown []string
	for _, tenant := range []string{"acme", "other"} {
		var lines strings.Builder
		for i := range 300 {
			fmt.Fprintf(&lines, `{"workflow":"parcel","transition":"label","key":"%d","payload":{"to":"Graz","label":"%s-%d"}}`+"\n", i, tenant, i)
		}
		s.bulk("application/x-ndjson", lines.String(), "", "Pawl-Tenant", tenant).want(t, http.StatusOK)
	}
	for i := range 8 {
		foreign = append(foreign, transitions.InstanceID("acme", "parcel", fmt.Sprint("acme-", i)).String())
		unknown = append(unknown, uuid.Must(uuid.NewRandom()).String())
	}
	s.exec("ANALYZE")
	a, notes := s.bystander(t)
	db := pgtest.DirectTo(t, s.pool)
	for _, c := range []struct{ method, path, body string }{
		{"GET", "/v1/instances/%s", ""},
		{"GET", "/v1/instances/%s?version=1", ""},
		{"GET", "/v1/instances/%s/history", ""},
		{"GET", "/v1/instances/%s/transitions", ""},
		{"GET", "/v1/instances/%s/diagram", ""},
		{"GET", "/v1/commands/parcel:%s/k", ""},
		{"DELETE", "/v1/commands/parcel:%s/k", ""},
		{"GET", "/v1/ops/instances/%s", ""},
		{"GET", "/v1/ops/verify?instance=%s", ""},
		{"GET", "/v1/ops/stuck?instance=%s", ""},
		{"POST", "/v1/instances/%s/stamp", "{}"},
		{"POST", "/v1/ops/instances/%s/pause", "{}"},
	} {
		t.Run(c.method+" "+c.path, func(t *testing.T) {
			type seen struct {
				answer string
				sql    []string
				pages  int // the fewest: a key at the end of a page costs one more
			}
			look := func(ids []string) (s seen) {
				s.pages = math.MaxInt
				for _, id := range ids {
					r := httptest.NewRequestWithContext(t.Context(), c.method, "http://localhost"+fmt.Sprintf(c.path, id), strings.NewReader(c.body))
					r.Header = headerOf([]string{"Pawl-Tenant", "other", "Idempotency-Key", "k", "Content-Type", "application/json"})
					w := httptest.NewRecorder()
					notes.take()
					a.ServeHTTP(w, r)
					s.answer = fmt.Sprint(w.Code, " ", strings.ReplaceAll(w.Body.String(), id, "ID"))
					s.sql = nil
					pages := 0
					for _, q := range notes.take() {
						s.sql = append(s.sql, q.sql)
						if text := strings.TrimSpace(q.sql); strings.HasPrefix(text, "SELECT") || strings.HasPrefix(text, "WITH") {
							pages += pgtest.Pages(t, db, q.sql, q.args...)
						}
					}
					s.pages = min(s.pages, pages)
				}
				return s
			}
			want := look(unknown)
			assert.NotEmpty(t, want.sql)
			assert.Equal(t, want, look(foreign))
		})
	}
}
