package transitions

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/workflow"
)

// What is stored is replayed byte for byte, also by a later release: these
// bodies may only ever gain members.
func TestBodiesGolden(t *testing.T) {
	t.Parallel()
	w := built(t, definition(1))
	const id = "c2bc3ce0-d3e4-811d-ab07-8c3ec6286248"
	for _, tt := range []struct {
		name    string
		command Command
		inst    *Instance
		want    string
	}{
		{"a creation", Command{Transition: "file", Payload: []byte(`{"number":"E-1","total":5}`)}, nil,
			`{"instance":"` + id + `","workflow":"expense","transition":"file","state":"open","version":1,"at":"2026-03-01T12:00:00.123456Z"}`},
		{"a transition with a result", onE1("add", `{"amounts":[1],"do":"return"}`, "bob"), expenseIn(open, 1, "1"),
			`{"instance":"` + id + `","workflow":"expense","transition":"add","state":"open","version":2,"at":"2026-03-01T12:00:00.123456Z",` +
				`"result":{"total":2}}`},
		{"an instance that was there", Command{Transition: "file", Payload: []byte(`{"number":"E-1","total":5}`)}, expenseIn(paid, 4, "1"),
			`{"instance":"` + id + `","workflow":"expense","transition":"file","state":"paid","version":4,"at":"2026-03-01T11:59:00.123456Z","existing":true}`},
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
			if string(d.Body) != tt.want {
				t.Errorf("got  %s\nwant %s", d.Body, tt.want)
			}
		})
	}
}

func TestWithPositionAddsTheLastMember(t *testing.T) {
	t.Parallel()
	body := append(make([]byte, 0, 100), `{"version":1}`...)
	for position, want := range map[int64]string{
		0: `{"version":1}`, 1: `{"version":1,"position":1}`, 1<<63 - 1: `{"version":1,"position":9223372036854775807}`,
	} {
		if got := WithPosition(body, position); string(got) != want {
			t.Errorf("%d: got %s, want %s", position, got, want)
		} else if cap(got) > len(got) {
			t.Errorf("%d: who appends to it writes where others do", position)
		}
	}
	if got := WithPosition(nil, 7); got != nil {
		t.Errorf("no body: got %s", got)
	}
	if string(body) != `{"version":1}` {
		t.Errorf("the stored body was changed to %s", body)
	}
}

func TestAReplayIsByteForByteTheFirstAnswer(t *testing.T) {
	t.Parallel()
	w := built(t, definition(1))
	d := Decide(prepared(t, w, onE1("add", `{"amounts":[1],"do":"return"}`, "bob")), w, expenseIn(open, 1, "1"), noon)
	first := WithPosition(d.Body, 42)
	r := &Record{Status: d.Status, Code: d.Code, Body: bytes.Clone(d.Body), Position: 42, Version: 2, Instance: d.After.ID}
	for range 3 {
		again, err := r.Answer(KeyReplay)
		if err != nil || !bytes.Equal(again.Body, first) || again.Status != d.Code || !again.Replayed {
			t.Errorf("got %+v, %v, want %s", again, err, first)
		}
	}
	if !bytes.HasPrefix(first, d.Body[:len(d.Body)-1]) {
		t.Errorf("%s does not begin as what is stored, %s", first, d.Body)
	}
}

func TestResultReadsWhatWasWritten(t *testing.T) {
	t.Parallel()
	want := Result{Instance: madeUp, Workflow: "w", Transition: `t"\`, State: "é\u2028", Version: 1 << 62,
		At: time.Date(9999, 12, 31, 23, 59, 59, 999999000, time.UTC), Existing: true, Result: []byte(`{"a":[1,"\u2028"]}`), Position: 12}
	body := WithPosition(want.stored(), want.Position)
	got, err := Receipt{Status: 200, Body: body}.Result()
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
}

func TestReceiptOfARefusalIsAnError(t *testing.T) {
	t.Parallel()
	d := refused(&workflow.Error{Code: workflow.IllegalTransition, Message: "not now", State: open, Allowed: []string{"add"}})
	r := Receipt{Status: d.Code, Body: d.Body}
	_, err := r.Result()
	for _, err := range []error{r.Err(), err} {
		want := &workflow.Error{Code: workflow.IllegalTransition, Message: "not now", State: open, Allowed: []string{"add"}}
		if !reflect.DeepEqual(err, want) {
			t.Errorf("got %#v, want %#v", err, want)
		}
	}
	if !r.Refused() || (Receipt{Status: 201}).Refused() {
		t.Error("a refusal is not told from an answer")
	}
}

func TestAnAnswerThatCannotBeReadIsADefect(t *testing.T) {
	t.Parallel()
	wantCode(t, Receipt{Status: 409, Body: []byte(`{`)}.Err(), workflow.Internal)
	_, err := Receipt{Status: 200, Body: []byte(`[]`)}.Result()
	wantCode(t, err, workflow.Internal)
	if got := (Receipt{Status: 200, Instance: uuid.Nil}).Err(); got != nil {
		t.Errorf("got %v", got)
	}
}
