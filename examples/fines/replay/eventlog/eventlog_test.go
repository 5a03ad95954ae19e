package eventlog

import (
	"encoding/csv"
	"io"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/examples/fines"
	"github.com/pawlhq/pawl/internal/kernel/decide"
)

func text(t *testing.T, log io.Reader) string {
	t.Helper()
	b, err := io.ReadAll(log)
	require.NoError(t, err)
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
		_, err := Command(strings.Split(line, ","), 1)
		assert.ErrorContains(t, err, want, line)
	}
}

func TestGeneratedLogIsTheSameForTheSameSeed(t *testing.T) {
	short, long := text(t, Generate(7, 100)), text(t, Generate(7, 300))
	assert.True(t, strings.HasPrefix(long, short) && long != short, "a shorter log is not the beginning of a longer one")
	assert.NotEqual(t, short, text(t, Generate(8, 100)), "another seed makes the same log")
}

// A made-up log is in order, as the real one is, and its events are the
// transitions of the workflow; what is done by a timer is in no log.
func TestGeneratedLogUsesEveryTransition(t *testing.T) {
	w, err := fines.Workflow.Build()
	require.NoError(t, err)
	rows, err := csv.NewReader(Generate(3, 2000)).ReadAll()
	require.Truef(t, err == nil && strings.Join(rows[0], ",")+"\n" == header, "%v %v", rows[0], err)
	seen := map[string]bool{}
	last := rows[0]
	for _, row := range rows[1:] {
		c, err := Command(row, 1)
		require.NoError(t, err)
		_, err = decide.Prepare(c, w, uuid.New)
		assert.Falsef(t, err != nil && row[colPayment] != "0.00", "%v: %v", row, err)
		assert.Falsef(t, row[colCase] == last[colCase] && row[colTime] < last[colTime], "%v is dated before %v", row, last)
		seen[c.Transition], last = true, row
	}
	for _, timer := range w.Timers {
		seen[timer.Do] = true
	}
	for _, s := range w.Steps {
		assert.Truef(t, seen[s.Name], "no %s in 2,000 cases", s.Name)
	}
}
