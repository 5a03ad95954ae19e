package transitions

import (
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/workflow"
)

func someEvent() *Event {
	return &Event{Tenant: "acme", Position: 17, Ordinal: 1, Type: "expense.grown", Workflow: "expense", Instance: madeUp, Version: 3,
		Transition: "add", State: open, At: noon.In(time.FixedZone("", 3600)), Payload: []byte(`{"total":125}`)}
}

func TestCloudEventGolden(t *testing.T) {
	t.Parallel()
	const begin = `{"specversion":"1.0","id":"17-1","source":"/pawl/acme","type":"expense.grown",`
	const id = `01936b0e-0000-7000-8000-000000000001`
	const rest = `"time":"2026-03-01T12:00:00.123456Z","position":"17","instance":"` + id +
		`","version":3,"workflow":"expense","transition":"add","state":"open"`
	full := func(e *Event) {
		e.BusinessKey, e.From, e.Actor, e.Reason = "E\x01-1", paid, "bob \"b\"", "because:\r\n\tso\u0085 \uffff it is"
		e.Scope, e.Key, e.Cause, e.CausedBy = "inbox:bank", "m-7", CausedByMessage, "bank"
		e.Attributes = map[string]string{"never": "shown"}
	}
	for name, tt := range map[string]struct {
		change func(*Event)
		want   string
	}{
		"what every event has": {func(*Event) {}, begin + `"subject":"` + id + `",` + rest +
			`,"datacontenttype":"application/json","data":{"total":125}}`},
		"everything": {full, begin + `"subject":"E�-1",` + rest + `,"businesskey":"E�-1","from":"paid","actor":"bob \"b\"",` +
			`"reason":"because:   so� � it is","scope":"inbox:bank","key":"m-7","cause":"message","causedby":"bank",` +
			`"datacontenttype":"application/json","data":{"total":125}}`},
		"traced": {func(e *Event) { e.Trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01 congo=t61" }, begin +
			`"subject":"` + id + `",` + rest + `,"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01","tracestate":"congo=t61",` +
			`"datacontenttype":"application/json","data":{"total":125}}`},
		"erased": {func(e *Event) { e.Payload = nil }, begin + `"subject":"` + id + `",` + rest + `,"redacted":true}`},
	} {
		e := someEvent()
		tt.change(e)
		if got, want := string(e.AppendCloudEvent([]byte("before "))), "before "+strings.ReplaceAll(tt.want, `\ufffd`, "\ufffd"); got != want {
			t.Errorf("%s: got  %s\nwant %s", name, got, want)
		}
	}
	assert.Equal(t, "17-1", someEvent().ID(), "the event's id")
}

// The required attributes of CloudEvents 1.0 are present and the document is valid JSON, for any names.
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
		e.BusinessKey, e.Actor, e.Reason, e.Key = state, tenant, eventType, tenant
		raw := e.AppendCloudEvent(nil)
		require.Truef(t, jsontext.Value(raw).IsValid(), "not JSON: %s", raw)
		var got struct {
			SpecVersion string         `json:"specversion"`
			ID          string         `json:"id"`
			Source      string         `json:"source"`
			Type        string         `json:"type"`
			Time        time.Time      `json:"time"`
			Subject     string         `json:"subject"`
			Instance    string         `json:"instance"`
			Actor       string         `json:"actor"`
			Reason      string         `json:"reason"`
			State       string         `json:"state"`
			Position    int64          `json:"position,string"`
			Data        jsontext.Value `json:"data"`
		}
		require.NoErrorf(t, json.Unmarshal(raw, &got), "in %s", raw)
		assert.Truef(t, got.SpecVersion == "1.0" && got.ID != "" && got.Source != "" && got.Subject != "" &&
			got.Instance == madeUp.String() && got.Time.Equal(noon),
			"got %+v", got)
		assert.Truef(t, got.Type == eventType && got.State == state && got.Position == position && string(got.Data) == `{"total":125}`,
			"got %+v", got)
		assert.Truef(t, !strings.ContainsFunc(got.Subject+got.Actor+got.Reason, unicode.IsControl) && (got.Actor == tenant ||
			strings.ContainsFunc(tenant, unfit)),
			"got %+v", got)
		for i, c := range []byte(got.Source) { // a URI reference
			assert.Truef(t, c > ' ' && c < 0x7f && c != '"' && c != '?' && c != '#' && (c != '/' || i == 0 || i == 5),
				"the source %q has %q", got.Source, c)
		}
	})
}
