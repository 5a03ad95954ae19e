package ops_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/transitions"
)

func TestOpsInboxSeesToMessagesThatWereNotConsumed(t *testing.T) {
	p := newProgram(t)
	p.serve(func(e *engine.Engine) {
		for id, body := range map[string]string{"m-1": `{"number":"7"}`, "m-2": `{"number":""}`} {
			_, _ = e.Consume(t.Context(), transitions.Message{Consumer: "bank", ID: id, Type: "paid", Body: []byte(body), Delivery: 100})
		}
		_, _ = e.Consume(t.Context(), transitions.Message{Consumer: "bank", ID: "m-4", Body: make([]byte, transitions.MaxMessage+1)})
		submit(t, e, write("7")) // too late for m-1
	})
	got := p.run("inbox list")
	assert.True(t, strings.Count(got, " bank ") == 3 && strings.Contains(got, "invalid_payload"), got)
	got = p.run("inbox list --workflow bill --business-key 7")
	assert.True(t, strings.Count(got, " bank ") == 1 && strings.Contains(got, "  paid  bill      7             waiting  "), got)
	assert.Equal(t, "{\n  \"messages\": []\n}\n", p.run("inbox list --workflow bill --business-key 8 -o json"))
	p.fails("inbox list --business-key 7", "needs the workflow")
	for _, step := range []struct{ args, says string }{
		{"inbox body bank m-1", `{"number":"7"}`},
		{"inbox retry bank m-1 --by ann", "bank m-1: consumed\n"},
		{"inbox discard bank m-2 --by ann --reason test", "bank m-2: discarded\n"},
		{"inbox discard bank m-4 --by ann", "bank m-4: discarded\n"},
		{"inbox list -o json", "{\n  \"messages\": []\n}\n"},
		{"inbox body bank m-1 -o json", ""}, {"inbox discard bank m-2 -o json", ""}, {"inbox retry bank m-1 -o json", ""},
	} {
		got := p.run(step.args)
		if step.says == "" && strings.Contains(step.args, "json") && json.Valid([]byte(got)) {
			continue
		}
		assert.Equal(t, step.says, got, step.args)
	}
	p.fails("inbox retry bank m-4", "has 1048577 bytes")
	p.fails("inbox body bank m-4", "has 1048577 bytes")
	p.fails("inbox retry bank m-3", "has no such message")
	p.fails("inbox retry bank m-2", "invalid_payload: ", "; /number: ")
}
