package output

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/transitions"
)

func TestAnImportAndAMigrationAreSeenInTheReason(t *testing.T) {
	const at = "2020-01-31T12:00:00Z"
	for _, c := range []struct {
		transition, by, payload, reason, want string
		cause                                 transitions.Cause
	}{
		{"pay", "", `{"from":1,"to":2}`, "", "-", transitions.CausedByCaller},
		{"pay", "", "{}", "by\nletter", "by letter", transitions.CausedByCaller},
		{"pay", at, "{}", "", "imported, happened at " + at, transitions.CausedByImport},
		{"pay", at, "{}", "old files", "imported, happened at " + at + ": old files", transitions.CausedByImport},
		{"pawl.migrated", "", `{"from":1,"to":2}`, "", "version 1 to 2", transitions.CausedByOperator},
		{"pawl.migrated", "", `{"from":1,"to":2}`, "in cents", "version 1 to 2: in cents", transitions.CausedByOperator},
		{"pawl.migrated", "", "", "in cents", "in cents", transitions.CausedByOperator},
	} {
		assert.Equalf(t, c.want, Why(c.transition, c.cause, c.by, []byte(c.payload), c.reason), "%+v", c)
	}
}
