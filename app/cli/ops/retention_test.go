package ops_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/inspect"
)

func TestOpsRetention_NodeAndPartitions(t *testing.T) {
	p := behind(t)
	p.script("UPDATE pawl.leadership SET claimed_by = NULL, claimed_at = NULL, locked_until = NULL")
	if got := p.run("retention"); onlyLine(got, "node") != "node   -" || onlyLine(got, "until") != "until  -" {
		t.Errorf("nobody does it:\n%s", got)
	}
	p.script(`UPDATE pawl.leadership SET claimed_by = 'n-1', claimed_at = now(), locked_until = '2040-01-02T03:04:05Z'
		WHERE name = 'retention'`)
	got := p.run("retention")
	for _, want := range []string{"node   n-1\n", "until  2040-01-02T03:04:05Z, unless it goes on\n", "next   20", "partition  ", "outbox_",
		"command_history_", "  in use\n"} {
		assert.Contains(t, got, want, "no in")
	}
	assert.Equal(t, "keeps  events for 720h0m0s, it is assumed; --keep-events where the nodes have another", onlyLine(got, "keeps"))
	var r inspect.Retention
	err := json.Unmarshal([]byte(p.run("retention -o json")), &r)
	assert.Truef(t, err == nil && len(r.Partitions) != 0 && r.KeepEvents == 30*24*3600, "%+v, %v", r, err)
	p.script("SELECT pawl.make_partition('outbox', now() - interval '21 days')")
	assert.NotContains(t, p.run("retention"), "to be dropped", "by 30 days nothing is over")
	got = p.run("retention --keep-events 168h")
	assert.Truef(t, strings.Contains(got, "  to be dropped\n") && onlyLine(got, "keeps") == "keeps  events for 168h0m0s",
		"by a week the week before last is over:\n%s", got)
	p.fails("retention --keep-events 23h", "--keep-events 23h0m0s is less than a day")
}

// onlyLine is the line that begins with a word.
func onlyLine(text, begin string) string {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, begin) {
			return strings.TrimSuffix(line, "\n")
		}
	}
	return ""
}
