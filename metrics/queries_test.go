package metrics_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/app/service"
	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/auth/authtest"
	"github.com/pawlhq/pawl/auth/jwt"
	shop "github.com/pawlhq/pawl/examples/order"
	"github.com/pawlhq/pawl/examples/order/provider"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
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
	require.NoError(t, err)
	s, err := service.Start(t.Context(), service.Config{
		Workflows: []workflow.Source{shop.Workflow(provider.New())}, Database: pgtest.DirectURL(t), Address: "127.0.0.1:0",
		Sinks: []relay.Sink{{Name: "events", To: to}}, Log: slog.New(slog.DiscardHandler),
		Auth: service.Auth{Keys: true, JWT: &jwt.Config{Issuer: authtest.Issuer, Audience: []string{authtest.Audience},
			Algorithms: []string{"ES256"}, JWKS: idp.URL, Grants: auth.Grants{{Right: auth.Read}, {Right: auth.Submit}, {Right: auth.OperateAll}}}},
	})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Stop(context.Background())) })
	return &node{url: s.URL(), token: idp.Token(nil)}
}

// use sends one request of each kind: an order placed twice with one key, paid and read, a cancelled order, and a request
// without credentials.
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
	require.NoError(t, err)
	r.Body.Close()
}

func (n *node) ask(t *testing.T, method, path, key, body string, status ...int) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, n.url+path, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+n.token)
	if key != "" {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", key)
	}
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	answer.Body.Close()
	require.Contains(t, status, answer.StatusCode, path)
}

// emptyPanels maps panels that a healthy node may leave empty to the reason.
var emptyPanels = map[string]string{
	"Attempts that reached their time limit": "none has reached it",
	"Ended instances":                        "none has ended yet",
	"Versions that not every node knows":     "every node knows every version",
	"TLS certificate ends in":                "a proxy ends TLS",
}

// chosen fills in the variables of the dashboard.
var chosen = strings.NewReplacer("$job", ".+", "$__rate_interval", "30s")

// selector finds the selectors of a query.
var selector = regexp.MustCompile(`\b(?:pawl|go|process)_[a-z_]+\b(?:\{[^}]*\})?`)

// TestQueries_HaveResults runs every query of the dashboard and every selector of the alerts in a Prometheus that scrapes a
// service under light load. No alert fires.
func TestQueries_HaveResults(t *testing.T) {
	program(t, "prometheus")
	n := startNode(t)
	rules, err := filepath.Abs(rulesFile)
	require.NoError(t, err)
	n.use(t)
	p := startPrometheus(t, fmt.Sprintf(`
global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}
rule_files: [%q]
scrape_configs:
  - job_name: pawl
    authorization: {credentials: %q}
    static_configs: [{targets: [%q]}]
`, rules, n.token, strings.TrimPrefix(n.url, "http://")))

	missing := map[string]string{} // queries without a result yet, with their panel or alert
	for _, panel := range panels(t) {
		for _, target := range panel.Targets {
			query := chosen.Replace(target.Expr)
			if emptyPanels[panel.Title] == "" {
				missing[query] = panel.Title
			} else {
				p.values(t, query) // Prometheus understands it
			}
		}
	}
	assert.Truef(t, len(missing) >= 80, "the panels have %d queries", len(missing))
	for _, a := range alerts(t) {
		p.values(t, a["expr"])
		for _, s := range selector.FindAllString(a["expr"], -1) {
			if !strings.Contains(s, `code=~"5.."`) { // nothing fails
				missing[s] = a["alert"]
			}
		}
	}
	defer func() { assert.Empty(t, missing, "queries without a result") }()
	await.Eventually(t, "every query has a result", func() bool {
		n.use(t)
		for query := range missing {
			if len(p.values(t, query)) > 0 {
				delete(missing, query)
			}
		}
		return len(missing) == 0
	})
	firing := p.values(t, `ALERTS{alertstate="firing",alertname!="PawlDatabaseUnreachable"}`) // which fires on a busy machine
	assert.Empty(t, firing)
}
