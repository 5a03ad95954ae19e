package metrics_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/testkit/docs"
	"github.com/pawlhq/pawl/metrics"
)

const (
	dashboardFile  = "../deploy/grafana/pawl.json"
	rulesFile      = "../deploy/prometheus/pawl.rules.yml"
	operationsFile = "../docs/operations.md"
	operationsURL  = "https://github.com/pawlhq/pawl/blob/main/docs/operations.md#"
)

// unshown maps metrics without a panel to the reason.
var unshown = map[string]string{
	"pawl_inflight_polls_total":       "counts with the clock; pawl_keys_oldest_due_seconds matters",
	"pawl_relay_polls_total":          "counts with the clock; pawl_sink_lag_seconds matters",
	"pawl_auth_api_key_looks_total":   "counts with the clock; failures are shown",
	"pawl_auth_key_reads_total":       "counts with the clock; failures and the age of the keys are shown",
	"pawl_retention_batches_total":    "counts with the clock; the backlog of retention is shown",
	"pawl_instances_estimated":        "the accuracy of the counts of instances, for programs",
	"pawl_sink_parked_events_total":   "pawl_sink_dead_letters shows the events that need an operator",
	"pawl_sink_failed_attempts_total": "pawl_relay_failed_attempts_total has the same by node, and pawl_sink_failures the current run",
}

// panel is a panel of the dashboard.
type panel struct {
	Title, Description string
	GridPos            struct{ X, Y, W, H int }
	Targets            []struct{ Expr string }
}

func panels(t *testing.T) []panel {
	t.Helper()
	text, err := os.ReadFile(dashboardFile)
	require.NoError(t, err)
	var dashboard struct{ Panels []panel }
	require.NoError(t, json.Unmarshal(text, &dashboard))
	require.Truef(t, len(dashboard.Panels) >= 40, "there are %d panels", len(dashboard.Panels))
	return dashboard.Panels
}

// alert is a rule, with its fields, labels and annotations by name.
type alert map[string]string

var ruleLine = regexp.MustCompile(`^ *(?:- )?([a-z_]+):(?: ([^'{\[|>].*)| '(.*)')?$`)

// alerts reads the rules. Each line is a key with a plain or single-quoted value.
func alerts(t *testing.T) (list []alert) {
	t.Helper()
	text, err := os.ReadFile(rulesFile)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		m := ruleLine.FindStringSubmatch(strings.TrimRight(line, "\n"))
		require.NotNilf(t, m, "%s: this is not a key and a value on one line: %s", rulesFile, line)
		if m[1] == "alert" {
			list = append(list, alert{})
		}
		if len(list) > 0 {
			list[len(list)-1][m[1]] = m[2] + strings.ReplaceAll(m[3], "''", "'")
		}
	}
	return list
}

// anchor is the section of docs/operations.md that the alert links.
func (a alert) anchor() string { return strings.TrimPrefix(a["runbook_url"], operationsURL) }

var metricName = regexp.MustCompile(`\b(?:pawl|go|process)_[a-z_]+\b`)

// metricsOf returns the metrics of the table that a query names. Every other name with the prefix pawl_ is an error.
func metricsOf(t *testing.T, query string) (list []metrics.Metric) {
	t.Helper()
	table := metrics.Table()
	for _, name := range metricName.FindAllString(query, -1) {
		i := slices.IndexFunc(table, func(m metrics.Metric) bool {
			suffix, is := strings.CutPrefix(name, m.Name)
			return is && (suffix == "" || m.Type == "histogram" && slices.Contains([]string{"_bucket", "_sum", "_count"}, suffix))
		})
		switch {
		case i >= 0:
			list = append(list, table[i])
		case strings.HasPrefix(name, "pawl_"):
			t.Errorf("there is no metric %s: %s", name, query)
		}
	}
	return list
}

func TestDashboard_Metrics(t *testing.T) {
	shown := map[string]bool{}
	for _, p := range panels(t) {
		for _, target := range p.Targets {
			query := target.Expr
			assert.Equalf(t, len(metricName.FindAllString(query, -1)), strings.Count(query, `{job=~"$job"`),
				"a metric is not filtered by the selected jobs: %s", query)
			for _, m := range metricsOf(t, query) {
				shown[m.Name] = true
				line := "`" + m.Name + "`: " + m.Help
				assert.Containsf(t, p.Description, line, "the description of %q lacks", p.Title)
				// All nodes export the same value of a shared metric, so a sum would count it once per node.
				assert.Falsef(t, m.Shared && !strings.Contains(query, "max by") && !strings.HasPrefix(query, "max("),
					"%s is shared and needs max: %s", m.Name, query)
				assert.Falsef(t, !m.Shared && strings.HasPrefix(query, "max"), "%s belongs to one node: %s", m.Name, query)
				assert.Falsef(t, m.Type == "counter" && !strings.Contains(query, "rate(") && !strings.Contains(query, "increase("),
					"%s is a counter and needs rate or increase: %s", m.Name, query)
			}
		}
	}
	listed := map[string]bool{}
	for _, m := range metrics.Table() {
		listed[m.Name] = true
		reason, is := unshown[m.Name]
		assert.NotEqualf(t, shown[m.Name], is, "%s: on a panel; the reason for no panel: %q", m.Name, reason)
	}
	for name := range unshown {
		assert.Truef(t, listed[name], "unshown has %s, which is not a metric", name)
	}
}

func TestDashboard_PanelsDoNotOverlap(t *testing.T) {
	taken := map[[2]int]string{}
	for _, p := range panels(t) {
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				other := taken[[2]int{x, y}]
				require.Truef(t, other == "" && x < 24, "%q is at the place of %q: %d, %d", p.Title, other, x, y)
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
}

func TestAlerts_AreComplete(t *testing.T) {
	list, names, all := alerts(t), map[string]bool{}, ""
	for _, a := range list {
		all += a["expr"] + "\n"
	}
	for _, a := range list {
		if names[a["alert"]] || a["summary"] == "" || a["description"] == "" || !slices.Contains([]string{"page", "ticket"}, a["severity"]) {
			t.Errorf("%v", a)
		}
		names[a["alert"]] = true
		used := metricsOf(t, a["expr"])
		assert.NotEqualf(t, 0, len(used), "%s has no metric", a["alert"])
		for _, m := range used { // a missing metric is not 0
			assert.Falsef(t, strings.Contains(a["expr"], "max("+m.Name+") == 0") && !strings.Contains(all, "absent("+m.Name+")"),
				"no rule fires when %s is missing", m.Name)
		}
	}
}

// labelOf matches a label in the template of a summary.
var labelOf = regexp.MustCompile(`\{\{ \$labels\.(\w+) \}\}`)

func TestAlerts_Golden(t *testing.T) {
	text, err := os.ReadFile(operationsFile)
	require.NoError(t, err)
	runbooks := strings.ReplaceAll(strings.ToLower(string(text)), " ", "-")
	var b strings.Builder
	b.WriteString("| alert | meaning | severity | runbook |\n|---|---|---|---|\n")
	for _, a := range alerts(t) {
		fmt.Fprintf(&b, "| `%s` | %s | %s | [%s](#%s) |\n",
			a["alert"], labelOf.ReplaceAllString(a["summary"], "*$1*"), a["severity"], strings.ReplaceAll(a.anchor(), "-", " "), a.anchor())
		assert.Containsf(t, runbooks, "\n###-"+a.anchor()+"\n", "%s: there is no section %q", a["alert"], a.anchor())
	}
	docs.Part(t, operationsFile, "alerts", b.String())
}
