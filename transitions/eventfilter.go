package transitions

import (
	"maps"
	"slices"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/workflow"
)

// EventFilter selects events of a log. Empty fields select all. Do not modify a filter in use.
type EventFilter struct {
	Workflow    string
	Instance    uuid.UUID
	BusinessKey string            // requires Workflow, because business keys are unique per workflow
	Attributes  map[string]string // values of declared attributes after the transition; all must match
	Types       []string          // one must match
	States      []workflow.State  // after the transition; one must match
}

// All reports whether the filter selects every event.
func (f *EventFilter) All() bool {
	return f.Workflow == "" && f.Instance == uuid.Nil && f.BusinessKey == "" &&
		len(f.Attributes) == 0 && len(f.Types) == 0 && len(f.States) == 0
}

// Takes reports whether the filter selects the event.
func (f *EventFilter) Takes(e *Event) bool {
	return (f.Workflow == "" || f.Workflow == e.Workflow) &&
		(f.Instance == uuid.Nil || f.Instance == e.Instance) &&
		(f.BusinessKey == "" || f.BusinessKey == e.BusinessKey) &&
		(len(f.Types) == 0 || slices.Contains(f.Types, e.Type)) &&
		(len(f.States) == 0 || slices.ContainsFunc(f.States, e.State.Has)) &&
		f.takesAttributes(e)
}

func (f *EventFilter) takesAttributes(e *Event) bool {
	for name, value := range f.Attributes {
		if has, is := e.Attributes[name]; !is || has != value {
			return false
		}
	}
	return true
}

// Check rejects attributes that no given version of the workflow declares, if there are any
// versions, and texts that cannot be stored. Error: InvalidRequest.
func (f *EventFilter) Check(versions []*workflow.Workflow) error {
	if f.BusinessKey != "" && f.Workflow == "" {
		return workflow.Errorf(workflow.InvalidRequest, "a filter by business key needs the workflow")
	}
	if problem := TextProblem(f.BusinessKey, workflow.MaxBusinessKey); problem != "" {
		return workflow.Errorf(workflow.InvalidRequest, "the business key %s", problem)
	}
	return CheckAttributes(f.Workflow, f.Attributes, versions)
}

// CheckKnown is like Check and also rejects a workflow or a state that is not among the known versions. Types are not checked, because
// actions choose those of their events. Error: InvalidRequest.
func (f *EventFilter) CheckKnown(known []*workflow.Workflow) error {
	versions := known
	if f.Workflow != "" {
		others := func(w *workflow.Workflow) bool { return w.Name != f.Workflow }
		if versions = slices.DeleteFunc(slices.Clone(known), others); len(versions) == 0 {
			return workflow.Errorf(workflow.InvalidRequest, "unknown workflow %q", f.Workflow)
		}
	}
	for _, state := range f.States {
		has := func(w *workflow.Workflow) bool { return slices.Contains(w.States, state) }
		if !slices.ContainsFunc(versions, has) {
			return workflow.Errorf(workflow.InvalidRequest, "no workflow that is selected has a state %q", state)
		}
	}
	return f.Check(versions)
}

// CheckAttributes rejects values that cannot be stored and, if there are versions, names that none
// of them declares. Error: InvalidRequest.
func CheckAttributes(name string, attributes map[string]string, versions []*workflow.Workflow) error {
	for _, attribute := range slices.Sorted(maps.Keys(attributes)) {
		declares := func(w *workflow.Workflow) bool { return slices.Contains(w.Attributes, attribute) }
		if problem := TextProblem(attributes[attribute], maxAttribute); problem != "" {
			return workflow.Errorf(workflow.InvalidRequest, "the value of attribute %q %s", attribute, problem)
		}
		if len(versions) > 0 && !slices.ContainsFunc(versions, declares) {
			if name == "" {
				return workflow.Errorf(workflow.InvalidRequest, "no workflow declares an attribute %q", attribute)
			}
			return workflow.Errorf(workflow.InvalidRequest, "workflow %q declares no attribute %q", name, attribute)
		}
	}
	return nil
}

// maxAttribute is the maximum length of an attribute in a filter, in bytes.
const maxAttribute = 255
