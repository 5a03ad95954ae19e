package decide

import (
	"context"
	"testing"

	"github.com/pawlhq/pawl/workflow"
)

// rounds is a definition whose approval excludes actors of the current round.
func rounds(t testing.TB) *workflow.Workflow {
	t.Helper()
	stay, draft := workflow.Stay, workflow.From("draft")
	work := func(context.Context, *workflow.Attempt, trip, wish) (wish, error) { return wish{}, nil }
	return built(t, workflow.Define("paper", 1,
		workflow.Start("begin", "draft", obey("begin")),
		workflow.On("assess", draft, stay, obey("assess")),
		workflow.Do("check", draft, "checking", "draft", work, obey("checked")).
			OrElse("draft", func(*workflow.Call, *trip, workflow.Failure) error { return nil }),
		workflow.On("reopen", workflow.From("draft", "checking"), "draft", obey("reopen")),
		workflow.On("approve", draft, stay, obey("")).NotBy("assess", "check", "reopen").Since("reopen"),
		workflow.On("approve-as-last", draft, stay, obey("")).NotByLast("assess").Since("reopen"),
		workflow.On("audit", draft, stay, obey("")).NotBy("assess"),
		workflow.On("end", draft, over, obey("end")),
	).Final(over))
}

func TestSince_CountsCurrentRound(t *testing.T) {
	t.Parallel()
	s := &sheet{t: t, w: rounds(t)}
	s.do("ann", "begin")
	s.do("ann", "assess")
	s.do("bob", "assess")
	s.wants("approve", map[string]bool{"ann": false, "bob": false, "cid": true})
	s.wants("approve-as-last", map[string]bool{"ann": true, "bob": false})

	s.do("cid", "reopen")
	s.wants("approve", map[string]bool{"ann": true, "bob": true, "cid": false})
	s.wants("approve-as-last", map[string]bool{"bob": true})
	s.wants("audit", map[string]bool{"ann": false, "bob": false, "cid": true})

	s.do("bob", "assess")
	s.wants("approve", map[string]bool{"ann": true, "bob": false})
	s.do("dan", "reopen")
	s.wants("approve", map[string]bool{"bob": true, "cid": true, "dan": false})
}

func TestSince_ActivityOfEarlierRound(t *testing.T) {
	t.Parallel()
	s := &sheet{t: t, w: rounds(t)}
	s.do("ann", "begin")
	s.do("ann", "check")
	s.do("bob", "reopen") // leaves the activity, whose effect may remain
	s.wants("approve", map[string]bool{"ann": true, "bob": false})

	f := s.do("ann", "check")
	s.end(f, Outcome{Result: []byte(`{}`)})
	s.wants("approve", map[string]bool{"ann": false})
}

func TestSince_AutomaticTransitionBeginsRound(t *testing.T) {
	t.Parallel()
	s := &sheet{t: t, w: built(t, workflow.Define("paper", 1,
		workflow.Start("begin", "draft", obey("begin")),
		workflow.On("assess", workflow.From("draft"), workflow.Stay, obey("assess")),
		workflow.On("complain", workflow.From("draft"), "disputed", obey("complain")),
		workflow.Auto("reopen", workflow.From("disputed"), "draft", func(*workflow.Call, *trip) error { return nil }),
		workflow.On("approve", workflow.From("draft"), over, obey("approve")).NotBy("assess").Since("reopen"),
	).Final(over))}
	s.do("ann", "begin")
	s.do("ann", "assess")
	s.wants("approve", map[string]bool{"ann": false})
	s.do("bob", "complain")
	s.wants("approve", map[string]bool{"ann": true})
}
