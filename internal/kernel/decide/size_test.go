package decide

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func TestTheDataOfAnInstanceIsBounded(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	assert.Equal(t, 1<<20, l.w.MaxData, "by default the bound")
	l.w.MaxData = len(l.inst.Data) + 100
	d := l.must(l.decide(l.command("edit", `{"text":"`+strings.Repeat("x", 50)+`"}`)))
	require.Truef(t, len(d.After.Data) <= l.w.MaxData, "the test's data has %d bytes", len(d.After.Data))
	_, d = l.decide(l.command("edit", `{"text":"`+strings.Repeat("x", 50)+`"}`))
	wantCode(t, d.Err, workflow.DataTooLarge)
	checkRefusal(t, d, l.inst)
	for _, want := range []string{"bytes", "trip", "allows"} {
		assert.Contains(t, d.Err.Message, want, "does not say")
	}
}

// Data that exceeds the bound already, because the bound was larger, may stay and shrink.
func TestDataThatIsLargerAlreadyMayStaySo(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.w.MaxData = 10
	l.inst.Data = append(l.inst.Data, bytes.Repeat([]byte(" "), 100)...) // which the next transition leaves out
	d := l.must(l.decide(l.command("edit", `{}`)))
	assert.Truef(t, len(d.After.Data) > l.w.MaxData, "the test's data has only %d bytes", len(d.After.Data))
	_, d = l.decide(l.command("edit", `{}`))
	wantCode(t, d.Err, workflow.DataTooLarge)
}

// An activity whose result makes the data too large has failed, and is undone; its failure is noted however large the data is.
func TestAResultThatMakesTheDataTooLargeIsAFailure(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	f := l.accept("book", `{}`)
	l.w.MaxData = len(l.inst.Data)
	d := l.end(f, Outcome{Result: []byte(`{"text":"seat 7"}`)})
	wantCode(t, d.Err, workflow.ActivityFailed)
	assert.Truef(t, d.After != nil && d.After.State == unbooked && d.Status == transitions.FailedFinal, "it became %+v", d)
	assert.NotEqual(t, 0, len(d.Commands), "what it did is not undone")
}
