package decide

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func TestPrepareSettlesTheInstanceAndTheScope(t *testing.T) {
	t.Parallel()
	w := built(t, definition(1))
	e1 := transitions.InstanceID("default", "expense", "E-1")
	acme := transitions.InstanceID("acme", "expense", "E-1")
	for _, tt := range []struct {
		name     string
		command  transitions.Command
		instance uuid.UUID
		key      string // the business key
		scope    string
		creates  bool
	}{
		{"a creation without a business key", transitions.Command{Transition: "draft"}, madeUp, "", "expense:draft", true},
		{"a creation with one", transitions.Command{Transition: "file", Payload: []byte(`{"number":"E-1","total":1}`)}, e1, "E-1", "expense:file",
			true},
		{"one that repeats it", transitions.Command{Transition: "file", BusinessKey: "E-1", Payload: []byte(`{"number":"E-1","total":1}`)},
			e1, "E-1", "expense:file", true},
		{"of another tenant", transitions.Command{Tenant: "acme", Transition: "file", Payload: []byte(`{"number":"E-1","total":1}`)},
			acme, "E-1", "expense:file", true},
		{"a transition by id", transitions.Command{Transition: "drop", Instance: madeUp}, madeUp, "", "expense:" + madeUp.String(), false},
		{"by business key", transitions.Command{Transition: "drop", BusinessKey: "E-1"}, e1, "E-1", "expense:" + e1.String(), false},
		{"with a scope of its own", transitions.Command{Transition: "drop", BusinessKey: "E-1", Options: transitions.Options{Scope: "mine"}}, e1,
			"E-1", "mine", false},
		{"a creation with a scope of its own", transitions.Command{Transition: "draft", Options: transitions.Options{Scope: "mine"}}, madeUp, "",
			"mine", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := prepared(t, w, tt.command)
			assert.Truef(t, p.Instance == tt.instance && p.BusinessKey == tt.key && p.Scope == tt.scope && p.Creates == tt.creates,
				"got %s %q %q %v, want %s %q %q %v", p.Instance, p.BusinessKey, p.Scope, p.Creates, tt.instance, tt.key, tt.scope, tt.creates)
			assert.Truef(t, p.Definition == w && p.Actor == transitions.DefaultActor && p.Tenant != "",
				"got definition %v, actor %q, tenant %q", p.Definition, p.Actor, p.Tenant)
		})
	}
}

func TestPrepareRefuses(t *testing.T) {
	t.Parallel()
	w := built(t, definition(1))
	for _, tt := range []struct {
		name    string
		command transitions.Command
		want    workflow.Code
		message string
	}{
		{"a command without a key", transitions.Command{Transition: "draft", Key: "-"}, workflow.KeyMissing, ""},
		{"an unknown transition", transitions.Command{Transition: "fly"}, workflow.TransitionNotFound, `has no transition "fly"`},
		{"an unknown one with a bad payload", transitions.Command{Transition: "fly", Payload: []byte(`[`)}, workflow.InvalidPayload, ""},
		{"a creation of a given instance", transitions.Command{Transition: "draft", Instance: madeUp}, workflow.InvalidRequest,
			"creates an instance"},
		{"a creation under another business key", transitions.Command{Transition: "file", BusinessKey: "E-2",
			Payload: []byte(`{"number":"E-1","total":1}`)},
			workflow.InvalidRequest, "not the one that the payload names"},
		{"a business key where there is none", transitions.Command{Transition: "draft", BusinessKey: "E-1"}, workflow.InvalidRequest,
			"not the one"},
		{"a transition of nothing", transitions.Command{Transition: "drop"}, workflow.InvalidRequest, "needs an instance or a business key"},
		{"a scope of Pawl's own", transitions.Command{Transition: "draft", Options: transitions.Options{Scope: "pawl:timer:x"}},
			workflow.ScopeInvalid, "Pawl's own"},
		{"an actor of Pawl's own", transitions.Command{Transition: "draft", Actor: "pawl:timer"}, workflow.InvalidRequest, "Pawl's own"},
		{"a payload that is no JSON", transitions.Command{Transition: "draft", Payload: []byte(`{`)}, workflow.InvalidPayload, ""},
		{"a payload with an unknown field", transitions.Command{Transition: "draft", Payload: []byte(`{"x":1}`)}, workflow.InvalidPayload, ""},
		{"a payload that fails its tags", transitions.Command{Transition: "file", Payload: []byte(`{"total":-1}`)}, workflow.InvalidPayload, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := tt.command
			c.Workflow = "expense"
			switch c.Key {
			case "":
				c.Key = "k"
			case "-":
				c.Key = ""
			}
			p, err := Prepare(c, w, fixedID)
			wantCode(t, err, tt.want)
			assert.Falsef(t, err != nil && !strings.Contains(err.Error(), tt.message), "got %v, want a message with %q", err, tt.message)
			assert.Nil(t, p, "got a prepared command with the error")
		})
	}
}

func TestPrepare_PanickingPayload(t *testing.T) {
	t.Parallel()
	w := built(t, workflow.Define("fragile", 1,
		workflow.Start("begin", "done", func(*workflow.Call, *expense, filing) error { return nil }).
			BusinessKey(func(filing) string { panic("secret of the house") })).Final("done"))
	p, err := Prepare(transitions.Command{Workflow: "fragile", Transition: "begin", Key: "k", Payload: []byte(`{"number":"1","total":1}`)}, w,
		fixedID)
	wantCode(t, err, workflow.Internal)
	assert.Nil(t, p, "got a prepared command with the error")
	assert.NotContains(t, string(transitions.ProblemOf(err).JSON()), "secret", "the caller is told")
}

func TestPrepareCopiesThePayload(t *testing.T) {
	t.Parallel()
	payload := []byte(`{"amounts":[1],"do":""}`)
	p := prepared(t, built(t, definition(1)), transitions.Command{Transition: "add", BusinessKey: "E-1", Payload: payload})
	copy(payload, `{"amounts":[9]`)
	d := Decide(p, p.Definition, expenseIn(open, 1, "0"), noon)
	if d.After == nil || string(d.Entry.Payload) != `{"amounts":[1],"do":""}` || !strings.Contains(string(d.After.Data), `"total":1`) {
		t.Errorf("the caller's buffer was used again, and the command became %s", d.Entry.Payload)
	}
}

func TestCheckRefusesWhatCannotBeStored(t *testing.T) {
	t.Parallel()
	long := func(n int) string { return strings.Repeat("x", n) }
	for _, tt := range []struct {
		name    string
		change  func(*transitions.Command)
		want    workflow.Code
		message string
	}{
		{"no key", func(c *transitions.Command) { c.Key = "" }, workflow.KeyMissing, "key is required"},
		{"a key too long", func(c *transitions.Command) { c.Key = long(transitions.MaxKey + 1) }, workflow.KeyInvalid, "longer than 255 bytes"},
		{"a key too long in bytes, not in letters", func(c *transitions.Command) { c.Key = strings.Repeat("é", 128) }, workflow.KeyInvalid,
			"longer than 255"},
		{"a key with a NUL", func(c *transitions.Command) { c.Key = "a\x00b" }, workflow.KeyInvalid, "NUL"},
		{"a key that is not UTF-8", func(c *transitions.Command) { c.Key = "a\xff" }, workflow.KeyInvalid, "UTF-8"},
		{"a scope too long", func(c *transitions.Command) { c.Scope = long(transitions.MaxScope + 1) }, workflow.ScopeInvalid,
			"longer than 255 bytes"},
		{"a scope with a NUL", func(c *transitions.Command) { c.Scope = "\x00" }, workflow.ScopeInvalid, "NUL"},
		{"a scope that is not UTF-8", func(c *transitions.Command) { c.Scope = "\xc3" }, workflow.ScopeInvalid, "UTF-8"},
		{"a tenant too long", func(c *transitions.Command) { c.Tenant = long(transitions.MaxTenant + 1) }, workflow.InvalidRequest,
			"the tenant is longer than 64"},
		{"a tenant with a NUL", func(c *transitions.Command) { c.Tenant = "\x00" }, workflow.InvalidRequest, "the tenant contains a NUL"},
		{"a tenant that is not UTF-8", func(c *transitions.Command) { c.Tenant = "\xff" }, workflow.InvalidRequest, "the tenant is not valid"},
		{"an actor too long", func(c *transitions.Command) { c.Actor = long(transitions.MaxActor + 1) }, workflow.InvalidRequest,
			"the actor is longer"},
		{"an actor with a NUL", func(c *transitions.Command) { c.Actor = "\x00" }, workflow.InvalidRequest, "the actor contains"},
		{"a business key too long", func(c *transitions.Command) { c.BusinessKey = long(256) }, workflow.InvalidRequest,
			"the business key is longer"},
		{"a business key with a NUL", func(c *transitions.Command) { c.BusinessKey = "\x00" }, workflow.InvalidRequest,
			"the business key contains"},
		{"both addresses", func(c *transitions.Command) { c.Instance, c.BusinessKey = madeUp, "E-1" }, workflow.InvalidRequest, "not both"},
		{"a business key of no workflow", func(c *transitions.Command) { c.Workflow, c.BusinessKey = "", "E-1" }, workflow.InvalidRequest,
			"needs its workflow"},
		{"no transition", func(c *transitions.Command) { c.Transition = "" }, workflow.InvalidRequest, "transition is missing"},
		{"a reason too long", func(c *transitions.Command) { c.Reason = long(transitions.MaxReason + 1) }, workflow.InvalidRequest,
			"the reason is longer than 4096 bytes"},
		{"a reason with a NUL", func(c *transitions.Command) { c.Reason = "\x00" }, workflow.InvalidRequest, "the reason contains a NUL"},
		{"a negative version", func(c *transitions.Command) { c.IfVersion = -1 }, workflow.InvalidRequest, "negative"},
		{"a time past all", func(c *transitions.Command) { c.NotBefore = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }, workflow.InvalidRequest,
			"year 9999"},
		{"a payload too large", func(c *transitions.Command) { c.Payload = make([]byte, transitions.MaxPayload+1) }, workflow.TooLarge,
			"larger than 1048576 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := transitions.Command{Key: "k", Workflow: "expense", Transition: "add"}
			tt.change(&c)
			_, err := Accept(c)
			wantCode(t, err, tt.want)
			assert.ErrorContains(t, err, tt.message, "want a message with")
		})
	}
}

func TestCheckTakesTheLongestOfEverything(t *testing.T) {
	t.Parallel()
	c := transitions.Command{
		Key:    strings.Repeat("k", transitions.MaxKey),
		Tenant: strings.Repeat("t", transitions.MaxTenant),
		Actor:  strings.Repeat("a", transitions.MaxActor), BusinessKey: strings.Repeat("b", workflow.MaxBusinessKey),
		Workflow: "expense", Transition: "add", Payload: []byte("{" + strings.Repeat(" ", transitions.MaxPayload-2) + "}"),
		Options: transitions.Options{Scope: strings.Repeat("s", transitions.MaxScope)},
	}
	_, err := Accept(c)
	require.NoError(t, err)
	_, err = Accept(transitions.Command{Key: " \t\n\u2028'\"\\", Transition: "add"})
	assert.NoError(t, err, "a key is opaque, but")
}

// past makes a command an import.
func past(c transitions.Command, ago time.Duration) transitions.Command {
	c.HappenedAt = noon.Add(-ago)
	return c
}

func TestImport_Invalid(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	for name, c := range map[string]transitions.Command{
		"what has not happened yet":  past(l.command("edit", `{}`), -time.Second),
		"what does something":        past(l.command("book", `{}`), time.Hour),
		"what begins something else": past(l.command("edit", `{"do":"spawn"}`), time.Hour),
	} {
		p := l.prepare(c)
		d := DecideAll(p, l.w, l.inst, func(string, int) *workflow.Workflow { return l.w }, nobody, noon)
		wantCode(t, d.Err, workflow.InvalidRequest)
		assert.Truef(t, !d.Stored && d.After == nil, "%s: %+v", name, d)
	}
	later := past(l.command("edit", `{}`), time.Hour)
	later.NotBefore = noon.Add(time.Hour)
	_, err := Prepare(later, l.w, fixedID)
	wantCode(t, err, workflow.InvalidRequest)
	farther := past(l.command("edit", `{}`), 0)
	farther.HappenedAt = time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC)
	_, err = Prepare(farther, l.w, fixedID)
	wantCode(t, err, workflow.InvalidRequest)
}
