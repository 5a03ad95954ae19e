package decide

import (
	"bytes"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func TestTheDataOfAnInstanceIsBounded(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	if l.w.MaxData != 1<<20 {
		t.Errorf("by default the bound is %d", l.w.MaxData)
	}
	l.w.MaxData = len(l.inst.Data) + 100
	d := l.must(l.decide(l.command("edit", `{"text":"`+strings.Repeat("x", 50)+`"}`)))
	if len(d.After.Data) > l.w.MaxData {
		t.Fatalf("the test's data has %d bytes", len(d.After.Data))
	}
	_, d = l.decide(l.command("edit", `{"text":"`+strings.Repeat("x", 50)+`"}`))
	wantCode(t, d.Err, workflow.DataTooLarge)
	checkRefusal(t, d, l.inst)
	for _, want := range []string{"bytes", "trip", "allows"} {
		if !strings.Contains(d.Err.Message, want) {
			t.Errorf("%q does not say %q", d.Err.Message, want)
		}
	}
}

// What is larger already, because the bound was larger, goes on, and may shrink.
func TestDataThatIsLargerAlreadyMayStaySo(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.w.MaxData = 10
	l.inst.Data = append(l.inst.Data, bytes.Repeat([]byte(" "), 100)...) // which the next transition leaves out
	d := l.must(l.decide(l.command("edit", `{}`)))
	if len(d.After.Data) <= l.w.MaxData {
		t.Errorf("the test's data has only %d bytes", len(d.After.Data))
	}
	_, d = l.decide(l.command("edit", `{}`))
	wantCode(t, d.Err, workflow.DataTooLarge)
}

// An activity whose result makes the data too large has failed, and is undone; its
// failure is noted however large the data is.
func TestAResultThatMakesTheDataTooLargeIsAFailure(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	f := l.accept("book", `{}`)
	l.w.MaxData = len(l.inst.Data)
	d := l.end(f, Outcome{Result: []byte(`{"text":"seat 7"}`)})
	wantCode(t, d.Err, workflow.ActivityFailed)
	if d.After == nil || d.After.State != unbooked || d.Status != transitions.FailedFinal {
		t.Errorf("it became %+v", d)
	}
	if len(d.Commands) == 0 {
		t.Error("what it did is not undone")
	}
}
