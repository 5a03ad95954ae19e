package ops_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/transitions"
)

func TestOpsRetentionShowsWhoRemovesAndWhatIsKept(t *testing.T) {
	p := behind(t)
	got := p.run("retention")
	for _, want := range []string{"node   ", "next   20", "partition  ", "outbox_", "command_history_", "  in use\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	var r transitions.Retention
	if err := json.Unmarshal([]byte(p.run("retention --json")), &r); err != nil || len(r.Partitions) == 0 {
		t.Errorf("%+v, %v", r, err)
	}
}
