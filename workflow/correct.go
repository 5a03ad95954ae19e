package workflow

import (
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/pawlhq/pawl/workflow/internal/unknown"
)

// StateProblem returns why an operator cannot put an instance into a state, or "" if the state is final or an ordinary one from which a
// final one can be reached.
func (w *Workflow) StateProblem(s State) string {
	switch busy := w.underWay(s); {
	case !slices.Contains(w.States, s):
		return "the workflow has no such state"
	case busy != nil:
		return fmt.Sprintf("an instance is there only while %q is under way", busy.Name)
	case len(w.Finals) > 0 && !w.ending()[s]:
		return "no final state can be reached from it"
	}
	return ""
}

// Corrected is the data after a change in JSON: the members that it names have its values, objects within them likewise, and null is the
// zero value. All others stay, also those that this build does not know. Errors: InvalidPayload with what
// is wrong, NotOnThisNode.
func (w *Workflow) Corrected(data, change []byte) ([]byte, error) { return w.correct(data, change) }

// corrects makes the function behind Corrected.
func corrects[D any](gone func() map[string]bool) func(data, correction []byte) ([]byte, error) {
	return func(data, correction []byte) ([]byte, error) {
		c := &Call{step: &Step{gone: gone()}}
		after, err := change(c, data, func(d *D) error {
			if err := json.Unmarshal(correction, d, jsonKnown); err != nil {
				return &Error{Code: InvalidPayload, Message: "the data cannot be corrected like this", Fields: []FieldError{decodeFailure(err)}}
			}
			return nil
		})
		if open, ok := errors.AsType[*unknown.Ambiguous](err); ok {
			return nil, notKept(open, "")
		}
		return after, err
	}
}
