package service

import (
	"context"
	"errors"
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
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// quiet is for what a test looks at in another way.
var quiet = slog.New(slog.DiscardHandler)

// service starts a service on a database of its own.
func service(t *testing.T, change ...func(*Config)) *Service {
	t.Helper()
	c := Config{Workflows: []workflow.Source{order.Workflow(provider.New())}, Database: pgtest.URL(t), Address: "127.0.0.1:0", Log: quiet}
	for _, f := range change {
		f(&c)
	}
	s, err := Start(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, s.Stop(context.Background()))
	})
	return s
}

func request(t *testing.T, method, url, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", "k")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(text)
}

const cart = `{"customer":"c-1","cart":"k-9","total":129900,"currency":"EUR"}`

// A program adds an address of its own, which works with the engine.
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
	code, text := request(t, "POST", s.URL()+"/checkout/k-9", "")
	assert.Equal(t, 201, code, text)
	code, text = request(t, "GET", s.URL()+"/v1/workflows/order/keys/c-1:k-9", "")
	assert.Equal(t, 200, code, text)
	_, err := Start(t.Context(), Config{Workflows: s.config.Workflows, Database: s.config.Database, Address: "127.0.0.1:0", Log: quiet,
		Routes: func(*Service) map[string]http.Handler {
			return map[string]http.Handler{"/v1/mine": http.NotFoundHandler()}
		}})
	assert.ErrorContains(t, err, "/v1/mine", "a route of Pawl's own")
}

// What an empty database has not, Start makes.
func TestServiceServesItsWorkflows(t *testing.T) {
	s := service(t, func(c *Config) { c.Database = pgtest.EmptyURL(t) })
	await.Eventually(t, "the service is ready", func() bool { code, _ := request(t, "GET", s.URL()+"/readyz", ""); return code == 200 })
	code, body := request(t, "POST", s.URL()+"/v1/workflows/order/place", cart)
	require.Equal(t, 201, code, body)
	head, err := s.Engine().Read().Head(t.Context(), "")
	assert.Truef(t, err == nil && head == 1, "the log's head is %d, %v", head, err)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	assert.NoError(t, s.Wait(ended))
}

func TestServiceIsMeasured(t *testing.T) {
	s := service(t)
	for range 2 {
		if code, body := request(t, "POST", s.URL()+"/v1/workflows/order/place", cart); code != 201 {
			t.Fatal(code, body)
		}
	}
	var body string
	await.Eventually(t, "the keys are measured", func() bool { // what is in the database is looked for now and then, for a moment
		var code int
		code, body = request(t, "GET", s.URL()+"/metrics", "")
		require.Equal(t, 200, code, body)
		return strings.Contains(body, `pawl_keys{status="succeeded"} 1`)
	})
	for _, want := range []string{
		`pawl_commands_total{claim="replayed"} 1`, "go_goroutines ",
		`pawl_http_requests_total{code="201",route="POST /v1/workflows/{workflow}/{transition}"} 2`,
	} {
		assert.Contains(t, body, want, "no in")
	}
}

// With defaults a service works on what it accepts; without workers it leaves
// that to other nodes.
func TestService_WithoutWorkers(t *testing.T) {
	for status, s := range map[string]*Service{
		"processing": service(t),
		"pending":    service(t, func(c *Config) { c.InFlight.Workers = -1 }),
	} {
		if code, body := request(t, "POST", s.URL()+"/v1/workflows/order/place", cart); code != 201 {
			t.Fatal(code, body)
		}
		code, body := request(t, "POST", s.URL()+"/v1/workflows/order/keys/c-1:k-9/pay", `{"method":"card"}`)
		assert.Truef(t, code == 202 && strings.Contains(body, `"status":"`+status+`"`), "%d %s, want %s", code, body, status)
	}
}

// Readers of a stream are told to resume elsewhere, and nothing is left behind.
func TestStop_EndsStreams(t *testing.T) {
	s := service(t)
	ws, _, err := websocket.DefaultDialer.DialContext(t.Context(), "ws"+strings.TrimPrefix(s.URL(), "http")+"/v1/stream", nil)
	require.NoError(t, err)
	defer func() { _ = ws.Close() }()
	require.NoError(t, ws.WriteMessage(websocket.TextMessage, []byte(`{"op":"subscribe","id":"a","after":"start"}`)))
	if _, _, err := ws.ReadMessage(); err != nil { // subscribed
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), "GET", s.URL()+"/v1/events", nil)
	require.NoError(t, err)
	req.Header.Set("Accept", "text/event-stream")
	events, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { _ = events.Body.Close() }()

	stopped := make(chan error, 1)
	go func() { stopped <- s.Stop(context.Background()) }()
	for {
		_, _, err := ws.ReadMessage()
		if err == nil {
			continue // caught_up
		}
		assert.Truef(t, websocket.IsCloseError(err, websocket.CloseGoingAway), "the WebSocket ended with %v, want 1001", err)
		break
	}
	_, err = io.Copy(io.Discard, events.Body)
	assert.NoError(t, err, "the event stream ended with, want its end")
	assert.NoError(t, <-stopped, "stop")
	assert.NoError(t, s.Stop(context.Background()), "stop again")
	assert.NoError(t, s.Wait(t.Context()), "a service that was stopped has failed")
}

func TestTakenPortIsAnError(t *testing.T) {
	s := service(t)
	_, err := Start(t.Context(), Config{
		Workflows: []workflow.Source{order.Workflow(provider.New())}, Database: pgtest.URL(t), Log: quiet,
		Address: strings.TrimPrefix(s.URL(), "http://"),
	})
	assert.ErrorIs(t, err, syscall.EADDRINUSE)
}

// A start that fails leaves nothing behind: the port is free again.
func TestFailedStartIsUndone(t *testing.T) {
	err := startAfterAFailure(t)
	for tries := 1; tries < 5 && errors.Is(err, syscall.EADDRINUSE); tries++ { // the port may have been given to another program
		err = startAfterAFailure(t)
	}
	assert.NoError(t, err)
}

// startAfterAFailure starts a service where another one could not be started.
func startAfterAFailure(t *testing.T) error {
	t.Helper()
	s := service(t)
	address := strings.TrimPrefix(s.URL(), "http://")
	require.NoError(t, s.Stop(context.Background()))
	c := Config{
		Workflows: []workflow.Source{order.Workflow(provider.New())},
		Database:  "postgres://127.0.0.1:1/x",
		Address:   address,
		Log:       quiet,
	}
	if _, err := Start(t.Context(), c); err == nil {
		t.Fatal("started without a database")
	}
	c.Database = pgtest.URL(t)
	again, err := Start(t.Context(), c)
	if err != nil {
		return err
	}
	return again.Stop(context.Background())
}

// A tenant that sends more than its share is told when to come again.
func TestAServiceLimitsTheRateOfEachTenant(t *testing.T) {
	s, err := Start(t.Context(), Config{Workflows: []workflow.Source{order.Workflow(provider.New())}, Database: pgtest.URL(t),
		Address: "127.0.0.1:0", Log: quiet, Rate: 0.001})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Stop(context.Background()) })
	for range 1100 { // more than may come at once
		r, err := http.Post(s.URL()+"/v1/workflows/order/place?dry_run=true", "application/json", strings.NewReader("{}"))
		require.NoError(t, err)
		_ = r.Body.Close()
		if r.StatusCode == http.StatusTooManyRequests {
			assert.NotEqual(t, "", r.Header.Get("Retry-After"), "it does not say when")
			return
		}
	}
	t.Error("there is no limit")
}

// What is said of retention reaches the engine, which refuses what cannot be.
func TestAServicePassesOnHowLongEventsAreKept(t *testing.T) {
	t.Parallel()
	c := Config{Workflows: []workflow.Source{order.Workflow(provider.New())}, Database: pgtest.URL(t), Address: "127.0.0.1:0", Log: quiet,
		Retention: engine.RetentionConfig{Outbox: time.Hour}}
	_, err := Start(t.Context(), c)
	assert.ErrorContains(t, err, "Config.Retention.Outbox is less than")
}
