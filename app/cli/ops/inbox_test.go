package ops_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/transitions"
)

func TestOpsInboxRetriesAndDiscardsMessages(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	p.serve(func(e *engine.Engine) {
		for id, body := range map[string]string{"m-1": `{"number":"7"}`, "m-2": `{"number":""}`} {
			_, _ = e.Consume(t.Context(), transitions.Message{Consumer: "bank", ID: id, Type: "paid", Body: []byte(body), Delivery: 100})
		}
		_, _ = e.Consume(t.Context(), transitions.Message{Consumer: "bank", ID: "m-4", Body: make([]byte, transitions.MaxMessage+1)})
		submit(t, e, write("7")) // too late for m-1
	})
	got := p.run("inbox list")
	assert.Equal(t, 3, strings.Count(got, " bank "), got)
	assert.Contains(t, got, "invalid_payload")
	got = p.run("inbox list --workflow bill --business-key 7")
	assert.Equal(t, 1, strings.Count(got, " bank "), got)
	assert.Contains(t, got, "  paid  bill      7             waiting  ")
	p.fails("inbox list --business-key 7", "needs the workflow")
	for _, step := range []struct{ args, want string }{
		{"inbox list --workflow bill --business-key 8 -o json", "{\n  \"messages\": []\n}\n"},
		{"inbox body bank m-1", `{"number":"7"}`},
		{"inbox retry bank m-1 --by ann", "bank m-1: consumed\n"},
		{"inbox discard bank m-2 --by ann --reason test", "bank m-2: discarded\n"},
		{"inbox discard bank m-4 --by ann", "bank m-4: discarded\n"},
		{"inbox list -o json", "{\n  \"messages\": []\n}\n"},
	} {
		assert.Equal(t, step.want, p.run(step.args), step.args)
	}
	for _, args := range []string{"inbox body bank m-1 -o json", "inbox discard bank m-2 -o json", "inbox retry bank m-1 -o json"} {
		assert.True(t, json.Valid([]byte(p.run(args))), args)
	}
	p.fails("inbox retry bank m-4", "has 1048577 bytes")
	p.fails("inbox body bank m-4", "has 1048577 bytes")
	p.fails("inbox retry bank m-3", "has no such message")
	p.fails("inbox retry bank m-2", "invalid_payload: ", "; /number: ")
}

func TestOpsInboxReadsKeptMessages(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	p.serve(func(e *engine.Engine) {
		for _, m := range []transitions.Message{
			{ID: "m-1", Body: []byte(`{"number":"7"}`), Keep: time.Hour},
			{ID: "m-1", Body: []byte(`{"number":"8"}`), Keep: time.Hour},
			{ID: "m-2", Body: []byte("\x00\xff"), Keep: time.Hour},
			{ID: "m-3", Body: []byte(`{"number":"9"}`)},
		} {
			m.Consumer, m.Headers = "bank", map[string][]string{"Signature": {"a", "b\x1b[2J\xff"}, "Id": {m.ID}}
			_, _ = e.Consume(t.Context(), m)
		}
	})
	got := p.run("inbox kept")
	assert.Equal(t, 3, strings.Count(got, " bank "), got)
	assert.NotContains(t, got, "m-3")
	got = p.run("inbox kept --consumer bank --id m-2")
	assert.Equal(t, 1, strings.Count(got, " m-2 "), got)
	assert.Equal(t, "Id: m-2\nSignature: a\nSignature: b\uFFFD[2J\uFFFD\n\n\x00\xff", p.run("inbox raw bank m-2"))
	raw := read[api.RawMessage](p, "inbox raw bank m-2")
	assert.Equal(t, "AP8=", raw.Body)
	assert.Len(t, raw.Headers["Signature"], 2)
	page := read[api.KeptMessagePage](p, "inbox kept --consumer bank --id m-1")
	require.Len(t, page.Messages, 2)
	got = p.run("inbox raw bank m-1 --hash " + page.Messages[1].Hash)
	assert.True(t, strings.HasSuffix(got, "\n\n"+`{"number":"8"}`), got)
	p.fails("inbox raw bank m-1", "several messages have this id")
	p.fails("inbox raw bank m-3", "is kept")
	p.fails("inbox kept --id m-1", "needs its consumer")
}
