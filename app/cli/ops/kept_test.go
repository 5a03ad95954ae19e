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

func TestOpsInboxReadsKeptMessages(t *testing.T) {
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
	assert.True(t, strings.Count(got, " bank ") == 3 && !strings.Contains(got, "m-3"), got)
	got = p.run("inbox kept --consumer bank --id m-2")
	assert.True(t, strings.Count(got, " bank ") == 1 && strings.Contains(got, " m-2 "), got)
	if got, want := p.run("inbox raw bank m-2"), "Id: m-2\nSignature: a\nSignature: b\uFFFD[2J\uFFFD\n\n\x00\xff"; got != want {
		t.Errorf("%q", got)
	}
	var raw api.RawMessage
	if err := json.Unmarshal([]byte(p.run("inbox raw bank m-2 -o json")), &raw); err != nil || raw.Body != "AP8=" || raw.Size != 2 ||
		len(raw.Headers["Signature"]) != 2 || raw.KeepUntil.Sub(raw.ReceivedAt) != time.Hour {
		t.Errorf("%+v, %v", raw, err)
	}
	p.fails("inbox raw bank m-1", "several messages have this id")
	var page api.KeptMessagePage
	err := json.Unmarshal([]byte(p.run("inbox kept --consumer bank --id m-1 -o json")), &page)
	require.Truef(t, err == nil && len(page.Messages) == 2, "%+v, %v", page, err)
	got = p.run("inbox raw bank m-1 --hash " + page.Messages[1].Hash)
	assert.Truef(t, strings.HasSuffix(got, "\n\n"+`{"number":"8"}`), "%q", got)
	p.fails("inbox raw bank m-3", "is kept")
	p.fails("inbox kept --id m-1", "needs its consumer")
}
