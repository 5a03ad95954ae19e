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

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/api/wire"
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

// strangersOf returns ids and keys of a tenant's instances, and as many that do not exist, in a database with other tenants.
func strangersOf(t testing.TB, s *server, n int) (theirs, nobodys []string) {
	t.Helper()
	for _, tenant := range []string{"acme", "other"} {
		var lines strings.Builder
		for i := range n {
			fmt.Fprintf(&lines, `{"workflow":"parcel","transition":"label","key":"%d","payload":{"to":"Graz","label":"%s-%d"}}`+"\n", i, tenant, i)
		}
		a := s.do(http.MethodPost, "/v1/commands", []byte(lines.String()), "Content-Type", "application/x-ndjson", "Pawl-Tenant", tenant)
		a.want(t, http.StatusOK)
		for _, one := range read[[]wire.BulkResult](t, a) {
			var done transitions.Result
			err := json.Unmarshal(one.Body, &done)
			require.Truef(t, err == nil && one.Status == http.StatusCreated, "%d %s, %v", one.Status, one.Body, err)
			if tenant == "acme" {
				theirs = append(theirs, done.Instance.String())
				nobodys = append(nobodys, uuid.Must(uuid.NewRandom()).String())
			}
		}
	}
	_, err := s.pool.Exec(t.Context(), "ANALYZE")
	require.NoError(t, err)
	return theirs, nobodys
}

// aimed are requests for something by the id of an instance.
var aimed = []struct{ method, path, body string }{
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
}

// asking sends one as the tenant "other".
func asking(t testing.TB, a http.Handler, method, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(t.Context(), method, "http://localhost"+path, strings.NewReader(body))
	r.Header.Set("Pawl-Tenant", "other")
	r.Header.Set("Idempotency-Key", "k")
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	w := httptest.NewRecorder()
	a.ServeHTTP(w, r)
	return w
}

// Of another tenant's id the same is asked of the database as of one that there is not, and the database looks at as much for it: so
// neither the text nor the time of an answer tells them apart.
func TestAForeignIDIsAskedForLikeOneThatThereIsNot(t *testing.T) {
	s := newServer(t)
	theirs, nobodys := strangersOf(t, s, 300)
	a, notes := s.bystander(t)
	db := pgtest.DirectTo(t, s.pool)
	for _, c := range aimed {
		t.Run(c.method+" "+c.path, func(t *testing.T) {
			var told [2]string
			var sql [2][]string
			var looked [2]int // pages; one more than needed where a key would be at the end of one, so the least of several
			for i, ids := range [][]string{theirs[:8], nobodys[:8]} {
				looked[i] = math.MaxInt
				for _, id := range ids {
					notes.take()
					w := asking(t, a, c.method, fmt.Sprintf(c.path, id), c.body)
					told[i] = fmt.Sprint(w.Code, " ", strings.ReplaceAll(w.Body.String(), id, "ID"))
					asks := notes.take()
					sql[i] = nil
					pages := 0
					for _, q := range asks {
						sql[i] = append(sql[i], q.sql)
						if strings.HasPrefix(strings.TrimSpace(q.sql), "SELECT") || strings.HasPrefix(strings.TrimSpace(q.sql), "WITH") {
							pages += pgtest.Pages(t, db, q.sql, q.args...)
						}
					}
					looked[i] = min(looked[i], pages)
				}
			}
			assert.Equal(t, told[1], told[0], "it is answered, and one that there is")
			assert.Truef(t, slices.Equal(sql[0], sql[1]) && len(sql[0]) != 0,
				"it is asked for by %q, and one that there is not by %q", sql[0], sql[1])
			assert.Equal(t, looked[1], looked[0], "pages are looked at, and for one that there is")
		})
	}
}
