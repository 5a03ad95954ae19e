package pawl

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/internal/pgtest"
	"github.com/pawlhq/pawl/transitions"
)

func TestOpsPausesAWorkflowUntilItIsResumed(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	orders(t, url, 1)
	for _, step := range []struct{ args, says string }{
		{"paused", "since  workflow  by  reason\n"},
		{"pause order --by ann --reason upgrade", "order: paused\n"},
		{"pause order --by bob", "order: paused\n"}, // and stays as it is
		{"resume order --tenant other", "order: resumed\n"},
	} {
		if got := opsRun(t, url, strings.Fields(step.args)...); got != step.says {
			t.Errorf("%s: %q", step.args, got)
		}
	}
	wantTable(t, opsRun(t, url, "paused"), `
since                 workflow  by   reason
(a time in UTC)       order     ann  upgrade`)
	s := service(t, func(c *Config) { c.Database = url })
	order := s.URL() + "/v1/workflows/order/place"
	if code, body := request(t, "POST", order, cart); code != 503 || !strings.Contains(body, "paused") {
		t.Errorf("while it is paused: %d %s", code, body)
	}
	var list []transitions.PausedWorkflow
	if err := json.Unmarshal([]byte(opsRun(t, url, "paused", "--json")), &list); err != nil || len(list) != 1 || list[0].Actor != "ann" {
		t.Errorf("%+v, %v", list, err)
	}
	if got := opsRun(t, url, "resume", "order", "--json"); !strings.Contains(got, `"done": "resumed"`) {
		t.Error(got)
	}
	if got := opsRun(t, url, "paused", "--json"); got != "[]\n" {
		t.Error(got)
	}
	code, _, stderr := run(t.Context(), "ops", "pause", "ordre", "--database", url)
	if code != 1 || !strings.Contains(stderr, "workflow_not_found") {
		t.Errorf("exit %d, %s", code, stderr)
	}
}
