package monitoring_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/app/service"
	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/auth/authtest"
	"github.com/pawlhq/pawl/auth/jwt"
	"github.com/pawlhq/pawl/examples/order"
	"github.com/pawlhq/pawl/examples/order/provider"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/metrics/monitoring"
	"github.com/pawlhq/pawl/outbox/relay"
	"github.com/pawlhq/pawl/outbox/sink/file"
	"github.com/pawlhq/pawl/workflow"
)

// node is a service with everything that has metrics: a sink, an identity provider, API keys.
type node struct {
	url, token string
	orders     int
}

func startNode(t *testing.T) *node {
	t.Helper()
	idp := authtest.NewProvider(t)
	to, err := file.New(file.Config{Path: filepath.Join(t.TempDir(), "events")})
	if err != nil {
		t.Fatal(err)
	}
	s, err := service.Start(t.Context(), service.Config{
		Workflows: []workflow.Source{order.Workflow(provider.New())}, Database: pgtest.DirectURL(t), Address: "127.0.0.1:0",
		Sinks: []relay.Sink{{Name: "events", To: to}}, Log: slog.New(slog.DiscardHandler),
		Auth: service.Auth{Keys: true, JWT: &jwt.Config{Issuer: authtest.Issuer, Audience: []string{authtest.Audience},
			Algorithms: []string{"ES256"}, JWKS: idp.URL, Grants: auth.Grants{{Right: auth.Read}, {Right: auth.Submit}, {Right: auth.OperateAll}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return &node{url: s.URL(), token: idp.Token(nil)}
}

// use is a little of everything: an order that is placed, twice with one key, paid and shown, one that is cancelled, and a
// caller whom nobody knows.
func (n *node) use(t *testing.T) {
	t.Helper()
	n.orders++
	place := func(cart string) (path string) {
		body := fmt.Sprintf(`{"customer":"ann","cart":%q,"total":4200,"currency":"EUR"}`, cart)
		n.ask(t, http.MethodPost, "/v1/workflows/order/place", cart, body, 201)
		n.ask(t, http.MethodPost, "/v1/workflows/order/place", cart, body, 201)
		return "/v1/workflows/order/keys/" + url.PathEscape("ann:"+cart)
	}
	paid, cancelled := place(fmt.Sprint("paid-", n.orders)), place(fmt.Sprint("cancelled-", n.orders))
	n.ask(t, http.MethodPost, paid+"/pay", fmt.Sprint("pay-", n.orders), `{"method":"card"}`, 200, 202)
	n.ask(t, http.MethodPost, cancelled+"/cancel", fmt.Sprint("cancel-", n.orders), `{"reason":"changed"}`, 200)
	n.ask(t, http.MethodGet, paid, "", "", 200)
	r, err := http.Get(n.url + "/v1/instances")
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
}

func (n *node) ask(t *testing.T, method, path, key, body string, status ...int) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, n.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+n.token)
	if key != "" {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", key)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range status {
		if s == answer.StatusCode {
			return
		}
	}
	t.Fatalf("%s %s: %d %s", method, path, answer.StatusCode, text)
}

// shown is a panel as Grafana reads it from the file.
type shown struct {
	Title   string
	Targets []struct{ Expr, LegendFormat string }
}

// panelsOf are the panels of the dashboard's file.
func panelsOf(t *testing.T) []shown {
	t.Helper()
	text, err := os.ReadFile(dashboardFile)
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct{ Panels []shown }
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	return dashboard.Panels
}

// emptyPanels are those that a healthy node may leave empty.
func emptyPanels() map[string]string {
	list := map[string]string{}
	for _, r := range monitoring.Rows {
		for _, p := range r.Panels {
			if p.Empty != "" {
				list[p.Title] = p.Empty
			}
		}
	}
	return list
}

// chosen is what people choose on a dashboard.
var chosen = strings.NewReplacer("$job", ".+", "$__rate_interval", "30s")

// selector finds what a query selects.
var selector = regexp.MustCompile(`\b(?:pawl|go|process)_[a-z_]+\b(?:\{[^}]*\})?`)

// Each query of the dashboard, and each that an alert is about, gives something on a Prometheus that has scraped a service
// under a little load; and no alert fires.
func TestEveryQueryGivesSomethingOnARealPrometheus(t *testing.T) {
	program(t, "prometheus")
	n := startNode(t)
	rules, err := filepath.Abs(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	n.use(t)
	p := startPrometheus(t, fmt.Sprintf(`
global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}
rule_files: [%q]
scrape_configs:
  - job_name: pawl
    authorization: {credentials: %q}
    static_configs: [{targets: [%q]}]
`, rules, n.token, strings.TrimPrefix(n.url, "http://")))

	missing := map[string]string{} // what gives nothing yet, and where it stands
	empty := emptyPanels()
	for _, panel := range panelsOf(t) {
		for _, target := range panel.Targets {
			query := chosen.Replace(target.Expr)
			if empty[panel.Title] == "" {
				missing[query] = panel.Title
			} else {
				p.values(t, query) // Prometheus understands it
			}
		}
	}
	if len(missing) < 80 {
		t.Errorf("the panels have %d queries", len(missing))
	}
	for _, a := range monitoring.Alerts {
		p.values(t, a.Query)
		for _, s := range selector.FindAllString(a.Query, -1) {
			if !strings.Contains(s, `code=~"5.."`) { // nothing fails
				missing[s] = a.Name
			}
		}
	}
	defer func() {
		for query, where := range missing {
			t.Errorf("%s: this gives nothing: %s", where, query)
		}
	}()
	await.Eventually(t, "every query gives something", func() bool {
		n.use(t)
		for query := range missing {
			if len(p.values(t, query)) > 0 {
				delete(missing, query)
			}
		}
		return len(missing) == 0
	})
	for _, name := range p.firing(t) {
		if name != "PawlDatabaseUnreachable" { // so it seems where a machine is so busy that reads take seconds
			t.Errorf("on a healthy service there is the alert %s", name)
		}
	}
}
