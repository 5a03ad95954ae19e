package monitoring_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/internal/testkit/tables"
	"github.com/pawlhq/pawl/metrics"
	"github.com/pawlhq/pawl/metrics/monitoring"
)

func TestMain(m *testing.M) { tables.Main(m) }

var update = flag.Bool("update", false, "write the files that are generated")

const (
	dashboardFile = "../../deploy/grafana/pawl.json"
	rulesFile     = "../../deploy/prometheus/pawl.rules.yml"
)

func TestTheFilesAreThoseOfTheTables(t *testing.T) {
	dashboard, err := monitoring.Grafana()
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string][]byte{dashboardFile: dashboard, rulesFile: monitoring.Rules()} {
		if *update {
			if err := os.WriteFile(path, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what the tables say; run go test ./metrics/monitoring -update", path)
		}
	}
}

// lines are the queries of all panels.
func lines() (list []monitoring.Line) {
	for _, r := range monitoring.Rows {
		for _, p := range r.Panels {
			list = append(list, p.Lines...)
		}
	}
	return list
}

// A metric that nobody can see is one that nobody needs.
func TestEveryMetricIsOnAPanelOrHasAReason(t *testing.T) {
	shown := map[string]bool{}
	for _, l := range lines() {
		list, unknown := monitoring.Metrics(l.Query)
		for _, m := range list {
			shown[m.Name] = true
		}
		for _, name := range unknown {
			t.Errorf("there is no metric %s", name)
		}
	}
	listed := map[string]bool{}
	for _, m := range metrics.Table() {
		listed[m.Name] = true
		if why, is := monitoring.Unshown[m.Name]; is == shown[m.Name] || is && why == "" {
			t.Errorf("%s: on a panel: %v; the reason why not: %q", m.Name, shown[m.Name], why)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(monitoring.Unshown)) {
		if !listed[name] {
			t.Errorf("there is a reason why %s is not shown, and no such metric", name)
		}
	}
}

// What is the same on every node would be counted once for each by a sum, and what is a node's own is only one node's by a
// maximum.
func TestWhatIsSharedIsNotSummed(t *testing.T) {
	for _, l := range lines() {
		list, _ := monitoring.Metrics(l.Query)
		for _, m := range list {
			if m.Shared && !strings.Contains(l.Query, "max by") && !strings.HasPrefix(l.Query, "max(") {
				t.Errorf("%s is shared, so its maximum is to be taken: %s", m.Name, l.Query)
			}
			if !m.Shared && strings.HasPrefix(l.Query, "max") {
				t.Errorf("%s is of one node: %s", m.Name, l.Query)
			}
			if m.Type == "counter" && !strings.Contains(l.Query, "rate(") && !strings.Contains(l.Query, "increase(") {
				t.Errorf("%s only grows: %s", m.Name, l.Query)
			}
		}
	}
}

func TestThePanelsOfTheDashboardDoNotOverlap(t *testing.T) {
	text, err := monitoring.Grafana()
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			GridPos struct{ X, Y, W, H int }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	taken := map[[2]int]string{}
	for _, p := range dashboard.Panels {
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("%q is where %q is, at %d, %d", p.Title, other, x, y)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
	if len(dashboard.Panels) < 40 {
		t.Errorf("there are %d panels", len(dashboard.Panels))
	}
}

func TestAlertsAreWhole(t *testing.T) {
	all := ""
	for _, a := range monitoring.Alerts {
		all += a.Query + "\n"
	}
	names := map[string]bool{}
	for _, a := range monitoring.Alerts {
		if names[a.Name] || a.Summary == "" || a.Do == "" || a.Runbook == "" || strings.ContainsAny(a.Query, "|\n") {
			t.Errorf("%+v", a)
		}
		names[a.Name] = true
		list, unknown := monitoring.Metrics(a.Query)
		if len(list) == 0 || len(unknown) > 0 {
			t.Errorf("%s is about %v, and %v that are not there", a.Name, list, unknown)
		}
		// A metric that is missing is not 0.
		for _, m := range list {
			if strings.Contains(a.Query, "max("+m.Name+") == 0") && !strings.Contains(all, "absent("+m.Name+")") {
				t.Errorf("no rule fires when %s is missing", m.Name)
			}
		}
	}
}
