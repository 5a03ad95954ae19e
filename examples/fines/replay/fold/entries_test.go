package fold_test

import (
	"encoding/csv"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/examples/fines/replay/eventlog"
	"github.com/pawlhq/pawl/transitions"
)

// entries are the events of one case, in their order.
type entries struct{ Events []entry }

// entry is one row of a log, and the event's number in its case.
type entry struct {
	row    []string
	number int
}

func (e entry) Command() (transitions.Command, error) { return eventlog.Command(e.row, e.number) }

// The columns that tests change.
const (
	pointsColumn, dismissalColumn, lastSentColumn = 7, 8, 13
)

var activities = []string{"Create Fine", "Send Fine", "Insert Fine Notification", "Add penalty", "Payment",
	"Insert Date Appeal to Prefecture", "Send Appeal to Prefecture", "Receive Result Appeal from Prefecture",
	"Notify Result Appeal to Offender", "Appeal to Judge", "Send for Credit Collection"}

// add adds an event whose sums are all the same.
func (c *entries) add(t testing.TB, transition, day string, cents int64) {
	t.Helper()
	i := slices.IndexFunc(activities, func(name string) bool { return strings.ReplaceAll(strings.ToLower(name), " ", "_") == transition })
	require.Truef(t, i >= 0, "no activity is the transition %q", transition)
	sum := fmt.Sprintf("%d.%02d", cents/100, cents%100)
	c.Events = append(c.Events, entry{number: len(c.Events) + 1, row: []string{"T1", activities[i], day + "T00:00:00+01:00",
		"561", sum, "157", "A", "0", "NIL", sum, sum, sum, "P", ""}})
}

// written makes a case of lines "transition day [cents]".
func written(t testing.TB, lines ...string) entries {
	t.Helper()
	var c entries
	for _, line := range lines {
		var transition, day string
		var cents int64
		n, err := fmt.Sscan(line, &transition, &day, &cents)
		require.Falsef(t, err != nil && n < 2, "%q: %v", line, err)
		c.add(t, transition, day, cents)
	}
	return c
}

// log is the case as a log of its own.
func (c entries) log() string {
	var b strings.Builder
	b.WriteString(head)
	w := csv.NewWriter(&b)
	for _, e := range c.Events {
		_ = w.Write(e.row) // into memory
	}
	w.Flush()
	return b.String()
}
