package decide

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/transitions"
)

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

func TestAReplayIsByteForByteTheFirstAnswer(t *testing.T) {
	t.Parallel()
	w := built(t, definition(1))
	d := Decide(prepared(t, w, onE1("add", `{"amounts":[1],"do":"return"}`, "bob")), w, expenseIn(open, 1, "1"), noon)
	first := transitions.WithPosition(d.Body, 42)
	r := &transitions.Record{Status: d.Status, Code: d.Code, Body: bytes.Clone(d.Body), Position: 42, Version: 2, Instance: d.After.ID}
	for range 3 {
		again, err := KeyReplay.Answer(r)
		assert.Truef(t, err == nil && bytes.Equal(again.Body, first) && again.Status == d.Code && again.Replayed,
			"got %+v, %v, want %s", again, err, first)
	}
	assert.Truef(t, bytes.HasPrefix(first, d.Body[:len(d.Body)-1]), "%s does not begin as what is stored, %s", first, d.Body)
}

func TestResultReadsWhatWasWritten(t *testing.T) {
	t.Parallel()
	want := transitions.Result{Instance: madeUp, Workflow: "w", Transition: `t"\`, State: "é\u2028", Version: 1 << 62,
		At: time.Date(9999, 12, 31, 23, 59, 59, 999999000, time.UTC), Existing: true, Result: []byte(`{"a":[1,"\u2028"]}`), Position: 12}
	body := transitions.WithPosition(Answer(want), want.Position)
	got, err := transitions.Receipt{Status: 200, Body: body}.Result()
	assert.Truef(t, err == nil && reflect.DeepEqual(got, want), "got %+v, %v\nwant %+v", got, err, want)
}
