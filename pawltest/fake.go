package pawltest

import (
	"context"

	"github.com/go-json-experiment/json"

	"github.com/pawlhq/pawl/workflow"
)

// activity names an activity.
type activity struct{ workflow, transition string }

// fake replaces an activity's functions; a nil function is not replaced.
type fake struct {
	do    func(ctx context.Context, a *workflow.Attempt, data, payload []byte) ([]byte, error)
	check func(ctx context.Context, a *workflow.Attempt, data, payload []byte) ([]byte, bool, error)
	undo  func(ctx context.Context, a *workflow.Attempt, data, payload, result []byte) error
}

// Fake replaces the work of an activity with a function, with the declared types of the data, the payload and the result. Other types fail
// the test. It replaces all activities of the name.
func Fake[D, P, R any](s *Sim, workflowName, transition string,
	do func(ctx context.Context, a *workflow.Attempt, data D, payload P) (R, error)) {
	s.t.Helper()
	f, works := s.faked(workflowName, transition)
	f.do = func(ctx context.Context, a *workflow.Attempt, data, payload []byte) ([]byte, error) {
		result, err := do(ctx, a, decode[D](s, data), decode[P](s, payload))
		if err != nil {
			return nil, err
		}
		return s.fitting(works, result), nil
	}
	s.fakes[activity{workflowName, transition}] = f
}

// FakeCheck does for an activity's Check what [Fake] does for its work.
func FakeCheck[D, P, R any](s *Sim, workflowName, transition string,
	check func(ctx context.Context, a *workflow.Attempt, data D, payload P) (*R, error)) {
	s.t.Helper()
	f, works := s.faked(workflowName, transition)
	f.check = func(ctx context.Context, a *workflow.Attempt, data, payload []byte) ([]byte, bool, error) {
		result, err := check(ctx, a, decode[D](s, data), decode[P](s, payload))
		if err != nil || result == nil {
			return nil, false, err
		}
		return s.fitting(works, *result), true, nil
	}
	s.fakes[activity{workflowName, transition}] = f
}

// FakeUndo does for an activity's Undo what [Fake] does for its work.
func FakeUndo[D, P, R any](s *Sim, workflowName, transition string,
	undo func(ctx context.Context, a *workflow.Attempt, data D, payload P, result *R) error) {
	s.t.Helper()
	f, _ := s.faked(workflowName, transition)
	f.undo = func(ctx context.Context, a *workflow.Attempt, data, payload, result []byte) error {
		if len(result) == 0 {
			return undo(ctx, a, decode[D](s, data), decode[P](s, payload), nil)
		}
		r := decode[R](s, result)
		return undo(ctx, a, decode[D](s, data), decode[P](s, payload), &r)
	}
	s.fakes[activity{workflowName, transition}] = f
}

// faked returns the replacements of an activity so far, and the activities of the name in the newest version that declares any. It fails
// the test without such an activity.
func (s *Sim) faked(workflowName, transition string) (f fake, works []*workflow.Work) {
	s.t.Helper()
	for _, w := range s.workflows.Versions(workflowName) {
		for _, step := range w.Moving(transition) {
			if step.Work != nil {
				works = append(works, step.Work)
			}
		}
		if works != nil {
			return s.fakes[activity{workflowName, transition}], works
		}
	}
	s.t.Fatalf("pawltest: workflow %q has no activity %q", workflowName, transition)
	return fake{}, nil
}

// fitting is a result as JSON. It fails the test where none of the activities could have had it.
func (s *Sim) fitting(works []*workflow.Work, result any) []byte {
	s.t.Helper()
	raw := encode(s, result)
	var err error
	for _, work := range works {
		if err = work.Fits(raw); err == nil {
			return raw
		}
	}
	s.t.Fatalf("pawltest: %s is not a result of the activity: %v", raw, err)
	return nil
}

func decode[T any](s *Sim, raw []byte) (v T) {
	s.t.Helper()
	if len(raw) == 0 {
		return v
	}
	if err := json.Unmarshal(raw, &v, json.RejectUnknownMembers(true)); err != nil {
		s.t.Fatalf("pawltest: %s is not of type %T: %v", raw, v, err)
	}
	return v
}

func encode(s *Sim, v any) []byte {
	s.t.Helper()
	raw, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		s.t.Fatalf("pawltest: encode %T: %v", v, err)
	}
	return raw
}
