package decide

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/transitions"
)

func fingerprintOf(t testing.TB, c transitions.Command) string {
	t.Helper()
	p := prepared(t, built(t, definition(1)), c)
	return hex.EncodeToString(p.Fingerprint[:])
}

// The digests were computed by hand from the canonical requests. They are stored with every key, so that they may never change.
func TestFingerprintGolden(t *testing.T) {
	t.Parallel()
	e1 := transitions.InstanceID("default", "expense", "E-1")
	for _, tt := range []struct {
		name      string
		command   transitions.Command
		canonical string
		want      string
	}{
		{"a creation", transitions.Command{Transition: "file", Payload: []byte(`{"total": 1.2e2, "number": "E-1"}`)},
			`{"actor":"local","if_version":0,"instance":null,"payload":{"number":"E-1","total":120},"transition":"file","workflow":"expense"}`,
			"21a81e02e197c71cf1ce8be24aad321311cfa64bf163eaca2009580e8d9cc6b3"},
		{"a creation without a payload", transitions.Command{Transition: "draft"},
			`{"actor":"local","if_version":0,"instance":null,"payload":{},"transition":"draft","workflow":"expense"}`,
			"a8fb53be008fcfdbd49f525de2a27ee025213a06ac5a713482db2a781d6dd6e4"},
		{"a transition", transitions.Command{Transition: "add", Instance: e1, Actor: `ann "é"`,
			Payload: []byte(`{"do":"","amounts":[1,2]}`), Options: transitions.Options{IfVersion: 7}},
			`{"actor":"ann \"é\"","if_version":7,"instance":"c2bc3ce0-d3e4-811d-ab07-8c3ec6286248","payload":{"amounts":[1,2],"do":""},` +
				`"transition":"add","workflow":"expense"}`,
			"d885b45ce7c337015721f12344951797a826c034cf79fce5e161b223495cf652"},
		{"a transition with a reason", transitions.Command{Transition: "add", Instance: e1, Actor: "ann", Reason: "two\nlines, \"é\"",
			Payload: []byte(`{"amounts":[1]}`)},
			`{"actor":"ann","if_version":0,"instance":"c2bc3ce0-d3e4-811d-ab07-8c3ec6286248","payload":{"amounts":[1]},` +
				`"reason":"two\nlines, \"é\"","transition":"add","workflow":"expense"}`,
			"4392862c57e2f524a7af3ac6624040d64de27765f3a7b17b0f187b762f0fb285"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sum := sha256.Sum256([]byte(tt.canonical))
			require.Equal(t, tt.want, hex.EncodeToString(sum[:]), "the vector itself is wrong")
			assert.Equal(t, tt.want, fingerprintOf(t, tt.command))
		})
	}
}

func TestTheSameRequestHasTheSameFingerprint(t *testing.T) {
	t.Parallel()
	e1 := transitions.InstanceID("default", "expense", "E-1")
	base := transitions.Command{Transition: "add", Instance: e1, Actor: "ann", Payload: []byte(`{"amounts":[1,20],"do":"é/"}`)}
	want := fingerprintOf(t, base)
	for _, tt := range []struct {
		name   string
		change func(*transitions.Command)
	}{
		{"other order of members", func(c *transitions.Command) { c.Payload = []byte(`{"do":"é/","amounts":[1,20]}`) }},
		{"other whitespace", func(c *transitions.Command) { c.Payload = []byte("\n{ \"amounts\" : [1,\t20],\r\n\"do\":\"é/\" } ") }},
		{"other number forms", func(c *transitions.Command) { c.Payload = []byte(`{"amounts":[1.0,2e1],"do":"é/"}`) }},
		{"unicode escapes", func(c *transitions.Command) { c.Payload = []byte(`{"amo\u0075nts":[1,20],"do":"\u00e9\/"}`) }},
		{"the instance by its business key", func(c *transitions.Command) { c.Instance, c.BusinessKey = uuid.Nil, "E-1" }},
		{"the tenant's default spelt out", func(c *transitions.Command) { c.Tenant = transitions.DefaultTenant }},
		{"another key", func(c *transitions.Command) { c.Key = "k-2" }},
		{"another scope", func(c *transitions.Command) { c.Scope = "mine" }},
		{"other roles", func(c *transitions.Command) { c.Roles = []string{"boss"} }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := base
			tt.change(&c)
			assert.Equal(t, want, fingerprintOf(t, c))
		})
	}
}

func TestAnotherRequestHasAnotherFingerprint(t *testing.T) {
	t.Parallel()
	e1 := transitions.InstanceID("default", "expense", "E-1")
	base := transitions.Command{Transition: "add", Instance: e1, Actor: "ann", Payload: []byte(`{"amounts":[1],"do":""}`)}
	seen := map[string]string{fingerprintOf(t, base): "the base"}
	for _, tt := range []struct {
		name   string
		change func(*transitions.Command)
	}{
		{"transition", func(c *transitions.Command) { c.Transition, c.Payload = "drop", nil }},
		{"instance", func(c *transitions.Command) { c.Instance = transitions.InstanceID("default", "expense", "E-2") }},
		{"payload", func(c *transitions.Command) { c.Payload = []byte(`{"amounts":[2],"do":""}`) }},
		{"payload, a number as a string", func(c *transitions.Command) { c.Payload = []byte(`{"amounts":[],"do":"1"}`) }},
		{"payload, a member less", func(c *transitions.Command) { c.Payload = []byte(`{"amounts":[1]}`) }},
		{"expected version", func(c *transitions.Command) { c.IfVersion = 1 }},
		{"actor", func(c *transitions.Command) { c.Actor = "bob" }},
		{"actor that looks like JSON", func(c *transitions.Command) { c.Actor = `ann","if_version":0,"x":"` }},
		{"reason", func(c *transitions.Command) { c.Reason = "why" }},
		{"another reason", func(c *transitions.Command) { c.Reason = "why not" }},
		{"reason that looks like JSON", func(c *transitions.Command) { c.Reason = `why","x":"` }},
		{"no actor", func(c *transitions.Command) { c.Actor = "" }},
	} {
		c := base
		tt.change(&c)
		got := fingerprintOf(t, c)
		other, taken := seen[got]
		assert.Falsef(t, taken, "%s: the same fingerprint as %s", tt.name, other)
		seen[got] = tt.name
	}
	other := workflowNamed(t, "expense-2")
	c := base
	c.Workflow, c.Key = "expense-2", "k-1"
	p, err := Prepare(c, other, fixedID)
	require.NoError(t, err)
	what, taken := seen[hex.EncodeToString(p.Fingerprint[:])]
	assert.Falsef(t, taken, "workflow: the same fingerprint as %s", what)
}

// What is stored is replayed byte for byte, also by a later release: these bodies may only ever gain members.
func TestBodiesGolden(t *testing.T) {
	t.Parallel()
	w := built(t, definition(1))
	const id = "c2bc3ce0-d3e4-811d-ab07-8c3ec6286248"
	for _, tt := range []struct {
		name    string
		command transitions.Command
		inst    *transitions.Instance
		want    string
	}{
		{"a creation", transitions.Command{Transition: "file", Payload: []byte(`{"number":"E-1","total":5}`)}, nil,
			`{"instance":"` + id + `","workflow":"expense","transition":"file","state":"open","version":1,"at":"2026-03-01T12:00:00.123456Z"}`},
		{"a transition with a result", onE1("add", `{"amounts":[1],"do":"return"}`, "bob"), expenseIn(open, 1, "1"),
			`{"instance":"` + id + `","workflow":"expense","transition":"add","state":"open","version":2,"at":"2026-03-01T12:00:00.123456Z",` +
				`"result":{"total":2}}`},
		{"an instance that was there", transitions.Command{Transition: "file", Payload: []byte(`{"number":"E-1","total":5}`)},
			expenseIn(paid, 4, "1"),
			`{"instance":"` + id + `","workflow":"expense","transition":"file","state":"paid","version":4,"at":"2026-03-01T11:59:00.123456Z",` +
				`"existing":true}`},
		{"an illegal transition", onE1("pay", "", "eve", "boss"), expenseIn(open, 1, "1"),
			`{"type":"https://github.com/pawlhq/pawl/blob/main/docs/errors.md#illegal_transition",` +
				`"title":"the state does not allow the transition","status":409,"code":"illegal_transition",` +
				`"detail":"\"pay\" is not possible in state \"open\"; allowed are: add, decide, drop.` +
				` This answer is final for this key; another try needs a new key.",` +
				`"final":true,"state":"open","allowed":["add","decide","drop"]}`},
		{"a refusal", onE1("add", `{"do":"refuse"}`, "bob"), expenseIn(open, 1, "1"),
			`{"type":"https://github.com/pawlhq/pawl/blob/main/docs/errors.md#guard_refused",` +
				`"title":"the workflow refused the command for a reason of the business","status":409,"code":"guard_refused",` +
				`"detail":"line 0 is not allowed. This answer is final for this key; another try needs a new key.","final":true,"state":"open"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := Decide(prepared(t, w, tt.command), w, tt.inst, noon)
			assert.Equal(t, tt.want, string(d.Body), d.Body)
		})
	}
}
