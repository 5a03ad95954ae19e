package transitions

import (
	"reflect"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/workflow"
)

func someEvent() *Event {
	return &Event{Tenant: "acme", Position: 17, Ordinal: 1, Type: "expense.grown", Workflow: "expense", Instance: madeUp, Version: 3,
		Transition: "add", State: open, At: noon.In(time.FixedZone("", 3600)), Payload: []byte(`{"total":125}`)}
}

func TestCloudEventGolden(t *testing.T) {
	t.Parallel()
	const want = `{"specversion":"1.0","id":"17-1","source":"/pawl/acme","type":"expense.grown",` +
		`"subject":"01936b0e-0000-7000-8000-000000000001","time":"2026-03-01T12:00:00.123456Z","datacontenttype":"application/json",` +
		`"position":"17","version":3,"workflow":"expense","transition":"add","state":"open","data":{"total":125}}`
	e := someEvent()
	if got := string(e.AppendCloudEvent([]byte("before "))); got != "before "+want {
		t.Errorf("got  %s\nwant %s", got, "before "+want)
	}
	if e.ID() != "17-1" {
		t.Errorf("the event's id is %s", e.ID())
	}
}

// The attributes that CloudEvents 1.0 requires are there and not empty, and the
// document is JSON, whatever the names.
func FuzzCloudEvent(f *testing.F) {
	for _, tenant := range []string{"default", "a b/c?d#e%", `"},{"x":"`, "é\u2028\x00\n", "..", "\U0001f6d2"} {
		f.Add(tenant, "expense.grown", "open", int64(1))
		f.Add("t", tenant, tenant, int64(1<<62))
	}
	f.Fuzz(func(t *testing.T, tenant, eventType, state string, position int64) {
		if TextProblem(tenant, MaxTenant) != "" || TextProblem(eventType, 255) != "" || TextProblem(state, 64) != "" {
			t.Skip("it is refused before")
		}
		e := someEvent()
		e.Tenant, e.Type, e.State, e.Position = tenant, eventType, workflow.State(state), position
		raw := e.AppendCloudEvent(nil)
		if !jsontext.Value(raw).IsValid() {
			t.Fatalf("not JSON: %s", raw)
		}
		var got struct {
			SpecVersion string         `json:"specversion"`
			ID          string         `json:"id"`
			Source      string         `json:"source"`
			Type        string         `json:"type"`
			Time        time.Time      `json:"time"`
			Subject     string         `json:"subject"`
			State       string         `json:"state"`
			Position    int64          `json:"position,string"`
			Data        jsontext.Value `json:"data"`
		}
		if err := json.Unmarshal(raw, &got); err != nil {
			t.Fatalf("%v in %s", err, raw)
		}
		if got.SpecVersion != "1.0" || got.ID == "" || got.Source == "" || got.Subject != madeUp.String() || !got.Time.Equal(noon) {
			t.Errorf("got %+v", got)
		}
		if got.Type != eventType || got.State != state || got.Position != position || string(got.Data) != `{"total":125}` {
			t.Errorf("got %+v", got)
		}
		for i, c := range []byte(got.Source) { // a URI reference
			if c <= ' ' || c >= 0x7f || c == '"' || c == '?' || c == '#' || c == '/' && i != 0 && i != 5 {
				t.Errorf("the source %q has %q", got.Source, c)
			}
		}
	})
}

func TestEveryEventOfATransitionHasItsOwnID(t *testing.T) {
	t.Parallel()
	w := built(t, definition(1))
	d := Decide(prepared(t, w, onE1("add", `{"amounts":[1],"do":"emit"}`, "bob")), w, expenseIn(open, 1, "1"), noon)
	var ids []string
	for i := range d.Events {
		d.Events[i].Position = 5
		ids = append(ids, d.Events[i].ID())
	}
	if want := []string{"5-0", "5-1", "5-2"}; !reflect.DeepEqual(ids, want) {
		t.Errorf("got %v, want %v", ids, want)
	}
}
