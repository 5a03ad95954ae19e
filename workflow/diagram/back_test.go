package diagram

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/workflow"
)

// An activity that returns to the state of its command is drawn to each possible state.
func TestDiagram_Back(t *testing.T) {
	t.Parallel()
	work := func(context.Context, *workflow.Attempt, data, workflow.None) (int, error) { return 0, nil }
	done := func(*workflow.Call, *data, int) error { return nil }
	gaveUp := func(*workflow.Call, *data, workflow.Failure) error { return nil }
	w := build(t, workflow.Define("desk", 1,
		workflow.Start("begin", "open", act),
		workflow.Do("ask", workflow.From("open", "waiting"), "asking", workflow.Stay, work, done).OrElse("waiting", gaveUp),
		workflow.Do("send", workflow.From("open", "waiting"), "sending", "closed", work, done).OrElse(workflow.Stay, gaveUp),
	).Final("closed"))
	var got []string
	for _, a := range pictureOf(w).arrows {
		for _, c := range a.captions() {
			got = append(got, string(a.from)+" "+c+" "+string(a.to))
		}
	}
	want := []string{
		" begin open", "open ask asking", "waiting ask asking", "asking ask done open", "asking ask done waiting", "asking ask failed waiting",
		"open send sending", "waiting send sending", "sending send done closed", "sending send failed open", "sending send failed waiting",
	}
	assert.Truef(t, slices.Equal(got, want), "got %q", got)
}
