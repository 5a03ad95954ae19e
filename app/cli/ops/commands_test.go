package ops_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestOpsCommandsListsWhatIsInFlight(t *testing.T) {
	p := trouble(t)
	var list struct {
		Commands []struct{ Key, Status, Stuck string }
	}
	for args, n := range map[string]int{"--status stuck": 1, "--status failed_retryable": 1, "--status stuck --workflow order": 1,
		"--status stuck --workflow bill": 0, "--status stuck --tenant other": 0, "--status lapsed": 0} {
		err := json.Unmarshal([]byte(p.run("commands -o json "+args)), &list)
		assert.Truef(t, err == nil && len(list.Commands) == n, "%s: %+v, %v", args, list, err)
	}
	got := p.run("commands --status stuck")
	assert.True(t, strings.Contains(got, " asked ") && strings.Contains(got, "ask_person"), got)
	stdout, stderr, err := p.try("commands --limit 1")
	assert.Truef(t, err == nil && strings.Count(stdout, "\n") == 2 && strings.Contains(stderr, "there are more"),
		"%v, %s%s", err, stdout, stderr)
	p.fails("commands --status succeeded", "--status is one of pending")
	p.fails("commands --workflow ordre", "workflow_not_found")
}
