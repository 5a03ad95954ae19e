package output

import (
	"encoding/json"
	"fmt"

	"github.com/pawlhq/pawl/transitions"
)

// Why is the reason of a transition as a table shows it, after what of it is in no other column: when something has happened that was
// imported, and between which versions an instance was migrated.
func Why(transition string, cause transitions.Cause, by string, payload []byte, reason string) string {
	what := ""
	var versions struct{ From, To int }
	switch {
	case cause == transitions.CausedByImport:
		what = "imported, happened at " + by
	case transition == "pawl.migrated" && json.Unmarshal(payload, &versions) == nil && versions.To > 0: // else it is redacted
		what = fmt.Sprintf("version %d to %d", versions.From, versions.To)
	}
	if what != "" && reason != "" {
		what += ": "
	}
	return OrNone(what + reason)
}
