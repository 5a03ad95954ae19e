package fold_test

import (
	"strings"
	"testing"
	"time"
)

var transitionNames = []string{
	"send_fine", "insert_fine_notification", "add_penalty", "payment", "insert_date_appeal_to_prefecture", "send_appeal_to_prefecture",
	"receive_result_appeal_from_prefecture", "notify_result_appeal_to_offender", "appeal_to_judge", "send_for_credit_collection",
}

// Whatever is entered in whatever order, the workflow and the fold agree on
// every outcome, on the state and on the sums.
func FuzzWorkflowAgreesWithTheFold(f *testing.F) {
	f.Add([]byte{40, 0, 0, 50, 15, 1, 20, 0, 2, 60, 82, 9, 200, 0})         // to the collector
	f.Add([]byte{40, 4, 5, 0, 5, 9, 0, 6, 9, 0, 7, 9, 0, 9, 9, 0})          // an appeal, upheld
	f.Add([]byte{0, 0, 5, 0, 4, 5, 0, 6, 9, 0, 7, 9, 0, 9, 9, 0})           // a fine of nothing
	f.Add([]byte{40, 0, 5, 9, 4, 5, 0, 0, 5, 9, 1, 5, 0, 1, 5, 0, 2, 5, 1}) // everything twice
	f.Add([]byte{255, 3, 250, 40, 3, 0, 0, 8, 1, 7})
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) > 100 {
			t.Skip("long enough")
		}
		compareAll(t, strings.NewReader(scripted(t, script).log()))
	})
}

// scripted makes a case of bytes: the fine, then three bytes an event for
// transition, days and sum. Some days go back, some sums are out of range.
func scripted(t testing.TB, script []byte) entries {
	var c entries
	day := time.Date(2010, 1, 1, 0, 0, 0, 0, time.UTC)
	add := func(transition string, value byte) {
		cents := int64(value) * 100
		if value == 255 {
			cents = 100_000_001
		}
		c.add(t, transition, day.Format(time.DateOnly), cents)
		if value%8 == 7 {
			c.Events[len(c.Events)-1].row[dismissalColumn] = "#"
		}
	}
	if len(script) == 0 {
		script = []byte{0}
	}
	add("create_fine", script[0])
	for rest := script[1:]; len(rest) >= 3; rest = rest[3:] {
		days := int(rest[1])
		if days > 240 {
			days = 240 - days
		}
		day = day.AddDate(0, 0, days)
		add(transitionNames[int(rest[0])%len(transitionNames)], rest[2])
	}
	return c
}
