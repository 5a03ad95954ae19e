package service

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/examples/order"
	"github.com/pawlhq/pawl/examples/order/provider"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/schema"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var quiet = slog.New(slog.DiscardHandler)

func theOrder() []workflow.Source { return []workflow.Source{order.Workflow(provider.New())} }

// service starts a service on a database of its own.
func service(t *testing.T, change ...func(*Config)) *Service {
	t.Helper()
	c := Config{Workflows: theOrder(), Database: pgtest.URL(t), Address: "127.0.0.1:0", Log: quiet}
	for _, f := range change {
		f(&c)
	}
	s, err := Start(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Stop(context.Background())) })
	return s
}

// do sends a request.
func do(t *testing.T, s *Service, method, path string, header http.Header, body string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL()+path, strings.NewReader(body))
	require.NoError(t, err)
	r.Header = header
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

func textOf(t *testing.T, resp *http.Response) string {
	t.Helper()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(text)
}

// send sends a request with a credential, unless it is empty, and with more headers.
func send(t *testing.T, s *Service, method, path, credential, body string, headers ...string) (int, string) {
	t.Helper()
	header := http.Header{}
	if strings.HasPrefix(path, "/v1/workflows/") && method == http.MethodPost {
		header.Set("Idempotency-Key", "k")
	}
	if credential != "" {
		header.Set("Authorization", "Bearer "+credential)
	}
	for i := 0; i < len(headers); i += 2 {
		header.Set(headers[i], headers[i+1])
	}
	resp := do(t, s, method, path, header, body)
	return resp.StatusCode, textOf(t, resp)
}

func asks(t *testing.T, s *Service, path, credential string) (int, string) {
	t.Helper()
	return send(t, s, "GET", path, credential, "")
}

const cart = `{"customer":"c-1","cart":"k-9","total":129900,"currency":"EUR"}`

func place(t *testing.T, s *Service) {
	t.Helper()
	status, body := send(t, s, "POST", "/v1/workflows/order/place", "", cart)
	require.Equal(t, 201, status, body)
}

func TestServiceServesRoutesOfTheProgram(t *testing.T) {
	t.Parallel()
	s := service(t, func(c *Config) {
		c.Routes = func(s *Service) map[string]http.Handler {
			return map[string]http.Handler{"POST /checkout/{cart}": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				receipt, err := s.Engine().Submit(r.Context(), transitions.Command{Workflow: "order", Transition: "place",
					Key: r.PathValue("cart"), Payload: []byte(cart)})
				assert.NoError(t, err)
				w.WriteHeader(receipt.Status)
			})}
		}
	})
	status, text := send(t, s, "POST", "/checkout/k-9", "", "")
	assert.Equal(t, 201, status, text)
	check(t, s, answer{"/v1/workflows/order/keys/c-1:k-9", "", 200, ""})
	_, err := Start(t.Context(), Config{Workflows: s.config.Workflows, Database: s.config.Database, Address: "127.0.0.1:0", Log: quiet,
		Routes: func(*Service) map[string]http.Handler {
			return map[string]http.Handler{"/v1/mine": http.NotFoundHandler()}
		}})
	assert.ErrorContains(t, err, "/v1/mine")
}

// Start migrates an empty database, and metrics cover requests and tables.
func TestService_EmptyDatabaseAndMetrics(t *testing.T) {
	s := service(t, func(c *Config) { c.Database = pgtest.EmptyURL(t) })
	await.Eventually(t, "readiness", func() bool { status, _ := asks(t, s, "/readyz", ""); return status == 200 })
	place(t, s)
	place(t, s)
	var body string
	await.Eventually(t, "metrics of the keys", func() bool {
		_, body = asks(t, s, "/metrics", "")
		return strings.Contains(body, `pawl_keys{status="succeeded"} 1`)
	})
	for _, want := range []string{
		`pawl_commands_total{claim="replayed"} 1`, "go_goroutines ",
		`pawl_http_requests_total{code="201",route="POST /v1/workflows/{workflow}/{transition}"} 2`,
	} {
		assert.Contains(t, body, want)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	assert.NoError(t, s.Wait(ended))
}

// The owner of the tables migrates; nodes connect as a role that owns none.
func TestService_RoleWithoutTables(t *testing.T) {
	t.Parallel()
	admin := pgtest.DirectTo(t, pgtest.EmptyPool(t))
	_, err := schema.Migrate(t.Context(), admin, schema.Default)
	require.NoError(t, err)
	role, as := pgtest.Role(t, admin)
	_, err = Start(t.Context(), Config{Workflows: theOrder(), Address: "127.0.0.1:0", Log: quiet, Database: as})
	assert.ErrorIs(t, err, schema.ErrRights)
	_, err = schema.Grant(t.Context(), admin, schema.Default, role)
	require.NoError(t, err)
	place(t, service(t, func(c *Config) { c.Database = as }))
}

// A node works on activities that it starts; without workers it leaves them to other nodes.
func TestService_WithoutWorkers(t *testing.T) {
	for status, s := range map[string]*Service{
		"processing": service(t),
		"pending":    service(t, func(c *Config) { c.InFlight.Workers = -1 }),
	} {
		place(t, s)
		code, body := send(t, s, "POST", "/v1/workflows/order/keys/c-1:k-9/pay", "", `{"method":"card"}`)
		assert.Equal(t, 202, code, body)
		assert.Contains(t, body, `"status":"`+status+`"`)
	}
}

func TestStop_EndsStreams(t *testing.T) {
	s := service(t)
	ws := webSocket(t, s, "")
	events := do(t, s, "GET", "/v1/events", http.Header{"Accept": {"text/event-stream"}}, "")
	stopped := make(chan error, 1)
	go func() { stopped <- s.Stop(context.Background()) }()
	closedWith(t, ws, websocket.CloseGoingAway)
	_, err := io.Copy(io.Discard, events.Body)
	assert.NoError(t, err)
	assert.NoError(t, <-stopped)
	assert.NoError(t, s.Stop(context.Background()), "second Stop")
	assert.NoError(t, s.Wait(t.Context()))
}

// A failed start closes its listener.
func TestStart_PortTakenAndFreed(t *testing.T) {
	s := service(t)
	c := Config{Workflows: theOrder(), Database: "postgres://127.0.0.1:1/x", Log: quiet, Address: strings.TrimPrefix(s.URL(), "http://")}
	_, err := Start(t.Context(), c)
	assert.ErrorIs(t, err, syscall.EADDRINUSE)
	require.NoError(t, s.Stop(context.Background()))
	for range 2 {
		_, err = Start(t.Context(), c)
		assert.ErrorContains(t, err, "connect to the database")
	}
}

func TestRateLimit(t *testing.T) {
	s := service(t, func(c *Config) { c.Rate = 0.001 })
	for range 1100 { // more than the burst
		r, err := http.Post(s.URL()+"/v1/workflows/order/place?dry_run=true", "application/json", strings.NewReader("{}"))
		require.NoError(t, err)
		_ = r.Body.Close()
		if r.StatusCode == http.StatusTooManyRequests {
			assert.NotEmpty(t, r.Header.Get("Retry-After"))
			return
		}
	}
	t.Error("no request was refused")
}

func TestRetentionConfigReachesEngine(t *testing.T) {
	t.Parallel()
	_, err := Start(t.Context(), Config{Workflows: theOrder(), Database: pgtest.URL(t), Address: "127.0.0.1:0", Log: quiet,
		Retention: engine.RetentionConfig{Outbox: time.Hour}})
	assert.ErrorContains(t, err, "Config.Retention.Outbox is less than")
}
