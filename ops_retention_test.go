package pawl

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/transitions"
)

func TestOpsRetentionShowsWhoRemovesAndWhatIsKept(t *testing.T) {
	url := behind(t)
	got := opsRun(t, url, "retention")
	for _, want := range []string{"node   ", "next   20", "partition  ", "outbox_", "command_history_", "  in use\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	var r transitions.Retention
	if err := json.Unmarshal([]byte(opsRun(t, url, "retention", "--json")), &r); err != nil || len(r.Partitions) == 0 {
		t.Errorf("%+v, %v", r, err)
	}
}
