package console

import (
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

const aSchema = `{"type":"object","required":["number","amount"],"additionalProperties":false,
	"$defs":{"bank":{"type":"object","properties":{"iban":{"type":"string"}}}},
	"properties":{"number":{"type":"string"},"amount":{"type":"integer"},"share":{"type":["number","null"]},"urgent":{"type":"boolean"},
	"kind":{"enum":["car","house","",null]},"level":{"enum":[1,2]},"bank":{"$ref":"#/$defs/bank"},
	"tags":{"type":"array"},"a/b~c":{"type":"string"},"any":true}}`

func TestFieldsOfSchema(t *testing.T) {
	var got []string
	for _, f := range fieldsOf(jsontext.Value(aSchema)) {
		required := ""
		if f.Required {
			required = "!"
		}
		got = append(got, f.Name+required+" "+f.Kind+" "+strings.Join(f.Choices, "|"))
	}
	want := []string{"p/number! text ", "p/amount! integer ", "p/share number ", "p/urgent choice true|false", "p/kind choice car|house",
		"p/level choice 1|2",
		"p/bank/iban text ", "p/tags json ", "p/a~1b~0c text ", "p/any json "}
	assert.Equal(t, want, got)
	assert.Equal(t, []field{}, fieldsOf(jsontext.Value(`{"type":"object","additionalProperties":false}`)))
	for _, s := range []string{`true`, `{}`, `{"type":"array"}`, `{"type":"object"}`, `{"type":"object","properties":7}`, ``} {
		assert.Nil(t, fieldsOf(jsontext.Value(s)), s)
	}
}

func TestPayloadOfForm(t *testing.T) {
	for sent, want := range map[string]string{
		"": `{}`,
		"p/number=A&p/amount=123456789012345678901234567890": `{"amount":123456789012345678901234567890,"number":"A"}`,
		"p/amount=+1e3+&p/share=0.10":                        `{"amount":1e3,"share":0.10}`,
		"p/urgent=false&p/kind=car&p/level=2":                `{"kind":"car","level":2,"urgent":false}`,
		"p/bank/iban=%22%3Cb%3E%0D%0A&p/a~1b~0c=x":           `{"a/b~c":"x","bank":{"iban":"\"<b>"}}`,
		"p/tags=[1,+%22a%22]&p/any=null&other=1":             `{"any":null,"tags":[1,"a"]}`,
	} {
		q, err := url.ParseQuery(sent)
		require.NoError(t, err)
		got, good := payloadOf(fieldsOf(jsontext.Value(aSchema)), q)
		assert.True(t, good, sent)
		assert.Equal(t, want, string(got), sent)
	}
	for _, sent := range []string{"p/amount=x", "p/amount=%22a%22", "p/amount=01", "p/share=NaN", "p/tags=[", "p/any=a", "p/number=%FF",
		"p/level={}%7D", "p/urgent=1+2"} {
		q, _ := url.ParseQuery(sent)
		fields := fieldsOf(jsontext.Value(aSchema))
		got, good := payloadOf(fields, q)
		assert.Truef(t, !good && slices.ContainsFunc(fields, func(f field) bool { return f.Problem != "" }),
			"%s: %s, %v", sent, got, good)
	}
}

func TestBlameAssignsProblemsToFields(t *testing.T) {
	fields := fieldsOf(jsontext.Value(aSchema))
	others := blame(fields, []workflow.FieldError{{Pointer: "/bank/iban", Message: "1"}, {Pointer: "/tags/3", Message: "2"},
		{Pointer: "/new", Message: "3"}, {Pointer: "", Message: "4"}})
	assert.Equal(t, []workflow.FieldError{{Pointer: "/new", Message: "3"}, {Pointer: "", Message: "4"}}, others)
	for _, f := range fields {
		assert.Equal(t, map[string]string{"/bank/iban": "1", "/tags": "2"}[f.pointer], f.Problem, f.pointer)
	}
}

func TestDifference(t *testing.T) {
	for _, c := range []struct{ before, after, want string }{
		{``, `{}`, ` > {}`},
		{``, `{"a":1,"b":{"c":"x"}}`, `/a > 1; /b/c > "x"`},
		{`{"a":1,"b":2}`, `{"a":1,"b":3}`, `/b 2 > 3`},
		{`{"a":1,"b":2}`, `{"b":2,"c/d":null}`, `/c~1d > null; /a 1 > `},
		{`{"a":{"x":1,"y":[1]}}`, `{"a":{"x":1,"y":[1,2]}}`, `/a/y [1] > [1,2]`},
		{`{"a":{"x":1}}`, `{"a":7}`, `/a {"x":1} > 7`},
		{`{"a":12345678901234567890}`, `{"a":12345678901234567891}`, `/a 12345678901234567890 > 12345678901234567891`},
		{`{"a":1}`, `{"a":1}`, ``},
	} {
		var got []string
		list, _ := difference(jsontext.Value(c.before), jsontext.Value(c.after))
		for _, one := range list {
			text := one.Pointer
			if one.Old != "" {
				text += " " + one.Old
			}
			got = append(got, text+" > "+one.New)
		}
		assert.Equalf(t, c.want, strings.Join(got, "; "), "%s to %s", c.before, c.after)
	}
	deep := strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000)
	difference(nil, jsontext.Value(deep)) // ends
	members := map[string]int{}
	for i := range 50_000 {
		members["k"+strings.Repeat("x", i%7)+number(i)] = 1
	}
	many, err := json.Marshal(members)
	require.NoError(t, err)
	list, more := difference(nil, many)
	assert.Len(t, list, maxChanges)
	assert.Equal(t, 50_000, len(list)+more)
}

// Each runbook that a page leads to is there.
func TestRunbooksExist(t *testing.T) {
	text, err := os.ReadFile("../docs/operations.md")
	require.NoError(t, err)
	anchors := map[string]bool{}
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(string(text), -1) {
		anchors[strings.ReplaceAll(strings.ToLower(heading[1]), " ", "-")] = true
	}
	files, _ := filepath.Glob("*.go")
	pages, _ := filepath.Glob("templates/*.html")
	found := 0
	for _, name := range append(files, pages...) {
		source, err := os.ReadFile(name)
		require.NoError(t, err)
		for _, use := range regexp.MustCompile(`[Rr]unbook:? "([a-z-]+)"`).FindAllStringSubmatch(string(source), -1) {
			if found++; !anchors[use[1]] {
				t.Errorf("%s: there is no runbook %q", name, use[1])
			}
		}
	}
	assert.Truef(t, found >= 10, "%d are named", found)
}

// However a command in flight stands, that is said.
func TestFlightReason(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration) time.Time { return now.Add(d) }
	for name, c := range map[string]struct {
		status wire.CommandStatus
		kind   string
		has    string
		when   time.Time
	}{
		"waits for its time": {wire.CommandStatus{Status: transitions.Pending, RunAt: at(time.Hour)}, whyWaits, "waits for its time",
			at(time.Hour)},
		"was just accepted": {wire.CommandStatus{Status: transitions.Pending, RunAt: at(-time.Second)}, whyWaits, "or for a worker",
			at(-time.Second)},
		"nobody takes it": {wire.CommandStatus{Status: transitions.Pending, RunAt: at(-time.Minute)}, whyWaits, "has a free worker",
			at(-time.Minute)},
		"is worked on": {wire.CommandStatus{Status: transitions.Processing, Attempt: 3, Failures: 1, LockedUntil: at(time.Second)},
			whyWorks,
			"attempt 2 is running", at(time.Second)},
		"the worker is lost": {wire.CommandStatus{Status: transitions.Processing, Attempt: 2, LockedUntil: at(-time.Second)}, whyLost,
			"has expired", at(-time.Second)},
		"has failed": {wire.CommandStatus{Status: transitions.FailedRetryable, Attempt: 3, Failures: 2, RunAt: at(time.Hour),
			Failure: "no"}, whyFails, "2 failures in total", at(time.Hour)},
		"is to stop": {wire.CommandStatus{Status: transitions.Processing, CancelledBy: "ann", LockedUntil: at(time.Second)}, whyWorks,
			"ann has requested its cancellation", at(time.Second)},
		"has ended meanwhile": {wire.CommandStatus{Status: transitions.Succeeded}, "", "", time.Time{}},
	} {
		got := flightReason(&c.status, now)
		assert.Truef(t, got.Kind == c.kind && strings.Contains(got.Text, c.has) && got.When.Equal(c.when) && got.Said == c.status.Failure,
			"%s: %+v", name, got)
	}
}
