package ops_test

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestOpsCommandsListsWhatIsInFlight(t *testing.T) {
	p := trouble(t)
	var list struct {
		Commands []struct{ Key, Status, Stuck string }
	}
	for args, n := range map[string]int{"--status stuck": 1, "--status failed_retryable": 1, "--status stuck --workflow order": 1,
		"--status stuck --workflow bill": 0, "--status stuck --tenant other": 0, "--status lapsed": 0} {
		if err := json.Unmarshal([]byte(p.run("commands -o json "+args)), &list); err != nil || len(list.Commands) != n {
			t.Errorf("%s: %+v, %v", args, list, err)
		}
	}
	if got := p.run("commands --status stuck"); !strings.Contains(got, " asked ") || !strings.Contains(got, "ask_person") {
		t.Error(got)
	}
	if stdout, stderr, err := p.try("commands --limit 1"); err != nil || strings.Count(stdout, "\n") != 2 ||
		!strings.Contains(stderr, "there are more") {
		t.Errorf("%v, %s%s", err, stdout, stderr)
	}
	p.fails("commands --status succeeded", "--status is one of pending")
	p.fails("commands --workflow ordre", "workflow_not_found")
}
