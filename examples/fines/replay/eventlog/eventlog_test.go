package eventlog

import (
	"encoding/csv"
	"io"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/examples/fines"
	"github.com/pawlhq/pawl/internal/kernel/decide"
)

func text(t *testing.T, log io.Reader) string {
	t.Helper()
	b, err := io.ReadAll(log)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestARowIsACommand(t *testing.T) {
	for line, want := range map[string]string{
		"A2,Create Fine,2007-03-09T00:00:00+01:00,561,36.5,7,C,2,A,,,0.0,,": `create_fine {"case":"A2","on":"2007-03-09",` +
			`"amount_cents":3650,"article":7,"vehicle_class":"C","points":2,"officer":561,"dismissal":"A"}`,
		"A2,Payment,2008-09-09T00:00:00+02:00,,,,,,,,87.01,90.0,,":    `payment {"on":"2008-09-09","amount_cents":8701,"total_cents":9000}`,
		"A2,Appeal to Judge,2008-09-09T00:00:00+02:00,0,,,,,NIL,,,,,": `appeal_to_judge {"on":"2008-09-09"}`,
		"A2,Send Fine,2006-12-05T00:00:00+01:00,,,,,,,11.0,,,,":       `send_fine {"on":"2006-12-05","expense_cents":1100}`,
		"A2,Insert Fine Notification,2007-08-02T00:00:00Z,,,,,,,,,,P,N": `insert_fine_notification ` +
			`{"on":"2007-08-02","notification_type":"P","last_sent":"N"}`,
	} {
		c, err := Command(strings.Split(line, ","), 7)
		if err != nil || c.Transition+" "+string(c.Payload) != want || c.Key != "A2-7" || c.BusinessKey != "A2" || c.Workflow != "fine" {
			t.Errorf("%s: %+v %s, %v", line, c, c.Payload, err)
		}
	}
	for line, want := range map[string]string{
		"A1,Tow Car,2006-12-05T00:00:00+01:00,,,,,,,,,,,":                 `unknown activity "Tow Car"`,
		"A1,Send Fine,5.12.2006,,,,,,,11.0,,,,":                           "cannot parse",
		"A1,Send Fine,2006-12-05T00:00:00+01:00,,,,,,,,,,,":               "invalid syntax",
		"A1,Create Fine,2006-07-24T00:00:00+02:00,x,35.0,157,A,0,,,,0,,,": "invalid syntax",
	} {
		if _, err := Command(strings.Split(line, ","), 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
}

func TestGeneratedLogIsTheSameForTheSameSeed(t *testing.T) {
	short, long := text(t, Generate(7, 100)), text(t, Generate(7, 300))
	if !strings.HasPrefix(long, short) || long == short {
		t.Error("a shorter log is not the beginning of a longer one")
	}
	if text(t, Generate(8, 100)) == short {
		t.Error("another seed makes the same log")
	}
}

// A made-up log is in order, as the real one is, and its events are the
// transitions of the workflow; what is done by a timer is in no log.
func TestGeneratedLogUsesEveryTransition(t *testing.T) {
	w, err := fines.Workflow.Build()
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(Generate(3, 2000)).ReadAll()
	if err != nil || strings.Join(rows[0], ",")+"\n" != header {
		t.Fatal(rows[0], err)
	}
	seen := map[string]bool{}
	last := rows[0]
	for _, row := range rows[1:] {
		c, err := Command(row, 1)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decide.Prepare(c, w, uuid.New); err != nil && row[colPayment] != "0.00" {
			t.Errorf("%v: %v", row, err)
		}
		if row[colCase] == last[colCase] && row[colTime] < last[colTime] {
			t.Errorf("%v is dated before %v", row, last)
		}
		seen[c.Transition], last = true, row
	}
	for _, timer := range w.Timers {
		seen[timer.Do] = true
	}
	for _, s := range w.Steps {
		if !seen[s.Name] {
			t.Errorf("no %s in 2,000 cases", s.Name)
		}
	}
}
