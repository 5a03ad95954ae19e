package eventlog

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/examples/fines"
	"github.com/pawlhq/pawl/internal/decide"
)

const head = "case,activity,time,resource,amount,article,vehicle_class,points,dismissal,expense," +
	"payment_amount,total_payment_amount,notification_type,last_sent\n"

const sample = head +
	"A1,Create Fine,2006-07-24T00:00:00+02:00,561,35.0,157,A,0,NIL,,,0.0,,\n" +
	"A1,Send Fine,2006-12-05T00:00:00+01:00,,,,,,,11.0,,,,\n" +
	"A2,Create Fine,2007-03-09T00:00:00+01:00,561,36.5,7,C,2,A,,,0.0,,\n" +
	"A2,Insert Fine Notification,2007-08-02T00:00:00+02:00,,,,,,,,,,P,\n" +
	"A2,Payment,2008-09-09T00:00:00+02:00,,,,,,,,87.01,90.0,,\n"

func collect(t testing.TB, log Cases) ([]Case, error) {
	t.Helper()
	var all []Case
	for c, err := range log {
		if err != nil {
			return all, err
		}
		all = append(all, c)
	}
	return all, nil
}

func TestReadGroupsRowsIntoCases(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := io.WriteString(z, sample); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]io.Reader{"plain": strings.NewReader(sample), "gzip": &packed} {
		got, err := collect(t, Read(r))
		if err != nil || len(got) != 2 || got[0].ID != "A1" || len(got[0].Events) != 2 || got[1].ID != "A2" || len(got[1].Events) != 3 {
			t.Fatalf("%s: %+v, %v", name, got, err)
		}
		fine := Event{Case: "A2", Number: 1, Transition: "create_fine", On: "2007-03-09", Officer: 561, Article: 7, Points: 2,
			VehicleClass: "C", AmountCents: 3650, Dismissal: "A"}
		if got[1].Events[0] != fine {
			t.Errorf("%s: %+v, want %+v", name, got[1].Events[0], fine)
		}
		paid := Event{Case: "A2", Number: 3, Transition: "payment", On: "2008-09-09", PaymentCents: 8701, TotalPaymentsCents: 9000}
		if got[1].Events[2] != paid {
			t.Errorf("%s: %+v, want %+v", name, got[1].Events[2], paid)
		}
	}
}

func TestReadStopsWhenTheReaderHasEnough(t *testing.T) {
	n := 0
	for range Read(strings.NewReader(sample)) {
		n++
		break
	}
	if n != 1 {
		t.Errorf("%d cases", n)
	}
}

func TestReadNamesTheLineOfAMalformedRow(t *testing.T) {
	const (
		created = "A1,Create Fine,2006-07-24T00:00:00+02:00,561,35.0,157,A,0,NIL,,,0.0,,\n"
		sent    = "A1,Send Fine,2006-12-05T00:00:00+01:00,,,,,,,11.0,,,,\n"
	)
	tests := []struct{ name, log, message string }{
		{"nothing", "", "no header"},
		{"other columns", "case,activity\n", "columns"},
		{"half a gzip", "\x1f\x8b\x08", "unpacked"},
		{"too few columns", head + "A1,Create Fine\n", "line 2: wrong number of fields"},
		{"unknown activity", head + created + "A1,Tow Car,2006-12-05T00:00:00+01:00,,,,,,,,,,,\n",
			`line 3 of the log: unknown activity "Tow Car"`},
		{"missing value", head + created + "A1,Send Fine,2006-12-05T00:00:00+01:00,,,,,,,,,,,\n", "line 3 of the log: Send Fine without expense"},
		{"value out of place", head + created + "A1,Send Fine,2006-12-05T00:00:00+01:00,,,157,,,,11.0,,,,\n",
			`Send Fine has no article, but here is "157"`},
		{"no day", head + strings.Replace(created, "2006-07-24T00:00:00+02:00", "24.7.2006", 1), "is not a time"},
		{"time of day", head + strings.Replace(created, "T00:00:00", "T10:00:00", 1), "is not a midnight"},
		{"no number", head + strings.Replace(created, "561", "x", 1), "resource: \"x\" is not a whole number"},
		{"no sum", head + strings.Replace(created, "35.0", "35,0", 1), "wrong number of fields"},
		{"three decimals", head + strings.Replace(created, "35.0", "35.001", 1), "amount: \"35.001\" is not a sum"},
		{"huge sum", head + strings.Replace(created, "35.0", "99999999999999999999.00", 1), "too large"},
		{"no case number", head + strings.Replace(created, "A1", "A 1", 1), "is not a case number"},
		{"unprintable code", head + strings.Replace(created, "NIL", "\x01", 1), "cannot be printed"},
		{"no creation", head + sent, "line 2 of the log: case A1: Create Fine is the first event"},
		{"two creations", head + created + created, "line 3 of the log: case A1: Create Fine is the first event"},
		{"scattered case", head + created + strings.ReplaceAll(created, "A1", "A2") + sent, "line 4 of the log: case A1 comes back"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := collect(t, Read(strings.NewReader(tt.log)))
			if err == nil || !strings.Contains(err.Error(), tt.message) {
				t.Errorf("got %v, want %s", err, tt.message)
			}
		})
	}
}

func TestFileThatIsNotThereIsAnError(t *testing.T) {
	if got, err := collect(t, File(t.TempDir()+"/none.csv")); err == nil || len(got) > 0 {
		t.Errorf("got %v, %v", got, err)
	}
}

// Every activity of a log is a transition, and its payload is one that the
// workflow takes. What is done by a timer is in no log.
func TestEveryActivityIsACommandOfTheWorkflow(t *testing.T) {
	w, err := fines.Workflow.Build()
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, a := range activities {
		e := Event{Case: "A1", Number: 7, Transition: a.transition, On: "2010-01-10", Officer: 561, Article: 157, VehicleClass: "A",
			AmountCents: 3500, NotificationType: "P", PaymentCents: 1, TotalPaymentsCents: 1}
		c, err := e.Command()
		if err != nil {
			t.Fatal(err)
		}
		if c.Key != "A1-7" || c.BusinessKey != "A1" || c.Workflow != "fine" || c.Transition != a.transition {
			t.Errorf("%s: %+v", a.name, c)
		}
		if _, err := decide.Prepare(c, w, uuid.New); err != nil {
			t.Errorf("%s: %v", a.name, err)
		}
		used[a.transition] = true
	}
	for _, timer := range w.Timers {
		used[timer.Do] = true
	}
	for _, s := range w.Steps {
		if !used[s.Name] {
			t.Errorf("no activity is the transition %s", s.Name)
		}
	}
	if _, err := (Event{Transition: "tow_car"}).Command(); err == nil {
		t.Error("an unknown transition became a command")
	}
}

// A row that is read can be written and read again, and says the same.
func FuzzRow(f *testing.F) {
	for line := range strings.Lines(sample) {
		f.Add(line)
	}
	f.Add("Z9,Appeal to Judge,2012-02-29T00:00:00Z,0,,,,,G,,,,,\n")
	f.Add(`V7,Send Appeal to Prefecture,2001-12-31T00:00:00+01:00,,,,,,"""",,,,,` + "\n")
	f.Add("V7,Add penalty,2001-12-31T00:00:00+01:00,,-0.5,,,,,,,,,\n")
	f.Fuzz(func(t *testing.T, line string) {
		row, err := csv.NewReader(strings.NewReader(line)).Read()
		if err != nil || len(row) != columns {
			return
		}
		e, err := parseRow(row)
		if err != nil {
			return
		}
		if e.Number = 1; e.Transition != createFine {
			e.Number = 2
		}
		c := Case{ID: e.Case, Events: []Event{e}}
		if e.Number == 2 {
			c.Events = []Event{{Case: e.Case, Number: 1, Transition: createFine, On: "2000-01-01", VehicleClass: "A"}, e}
		}
		var out bytes.Buffer
		if err := Write(&out, func(yield func(Case, error) bool) { yield(c, nil) }); err != nil {
			t.Fatal(err)
		}
		again, err := collect(t, Read(&out))
		if err != nil || len(again) != 1 || again[0].Events[e.Number-1] != e {
			t.Errorf("%q was read as %+v, written and read again as %+v, %v", line, e, again, err)
		}
		if _, err := e.Command(); err != nil {
			t.Error(err)
		}
	})
}

func TestWriteEndsAtAnError(t *testing.T) {
	broken := errors.New("broken")
	err := Write(io.Discard, func(yield func(Case, error) bool) { yield(Case{}, broken) })
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	tow := Case{ID: "A1", Events: []Event{{Case: "A1", Number: 1, Transition: "tow_car"}}}
	if err := Write(io.Discard, func(yield func(Case, error) bool) { yield(tow, nil) }); err == nil {
		t.Error("an unknown transition was written")
	}
}
