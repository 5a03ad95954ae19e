package workflow

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// Workflow is a checked definition with its types erased. It is immutable and
// safe for concurrent use.
type Workflow struct {
	Name       string
	Version    int
	Hash       string // hex SHA-256 of Describe: what the definition says, not how it is coded
	Steps      []*Step
	States     []State // in order of first mention
	Finals     []State
	Roles      []string
	Attributes []string

	byName  map[string][]*Step
	final   map[State]bool
	watched map[string]bool
	attrs   func(data []byte) (map[string]string, error)
}

// IsFinal reports whether an instance ends in the state.
func (w *Workflow) IsFinal(s State) bool { return w.final[s] }

// Named returns every step with the name: one for a start, one per group of
// states for others, none for an unknown name. All share one payload type.
func (w *Workflow) Named(transition string) []*Step { return w.byName[transition] }

// Leaving returns the step of that name that leaves the state, or nil.
func (w *Workflow) Leaving(transition string, state State) *Step {
	for _, s := range w.byName[transition] {
		if s.Leaves(state) {
			return s
		}
	}
	return nil
}

// Allowed lists the names of the transitions that leave the state, in order of
// declaration.
func (w *Workflow) Allowed(state State) []string {
	var names []string
	for _, s := range w.Steps {
		if s.Leaves(state) {
			names = append(names, s.Name)
		}
	}
	return names
}

// Watched reports whether some transition excludes the actors of the named one,
// so that they must be remembered.
func (w *Workflow) Watched(transition string) bool { return w.watched[transition] }

// AttributesOf computes the declared attributes from an instance's data.
func (w *Workflow) AttributesOf(data []byte) (map[string]string, error) { return w.attrs(data) }

func (w *Workflow) collectStates() {
	add := func(states []State) {
		for _, s := range states {
			if s != Stay && !slices.Contains(w.States, s) {
				w.States = append(w.States, s)
			}
		}
	}
	for _, s := range w.Steps {
		add(s.From)
		add(s.To)
	}
}

// Description is what a definition says, for readers and for comparing two
// builds of it.
type Description struct {
	Name        string                  `json:"name"`
	Version     int                     `json:"version"`
	States      []StateDescription      `json:"states"`
	Transitions []TransitionDescription `json:"transitions"`
	Roles       []string                `json:"roles,omitempty"`
	Attributes  []string                `json:"attributes,omitempty"`
}

// StateDescription is one state.
type StateDescription struct {
	Name  State `json:"name"`
	Final bool  `json:"final,omitempty"`
}

// TransitionDescription is one declared transition.
type TransitionDescription struct {
	Name           string         `json:"name"`
	Doc            string         `json:"doc,omitempty"`
	Start          bool           `json:"start,omitempty"`
	From           []State        `json:"from,omitempty"`
	To             []State        `json:"to"`
	Roles          []string       `json:"roles,omitempty"`
	NotBy          []string       `json:"not_by,omitempty"`
	Guards         []string       `json:"guards,omitempty"`
	BusinessKey    bool           `json:"business_key,omitempty"`
	RefuseExisting bool           `json:"refuse_existing,omitempty"`
	Payload        jsontext.Value `json:"payload"` // JSON Schema, draft 2020-12
}

// Describe says what the workflow declares.
func (w *Workflow) Describe() Description {
	d := Description{Name: w.Name, Version: w.Version, Roles: w.Roles, Attributes: w.Attributes}
	for _, s := range w.States {
		d.States = append(d.States, StateDescription{Name: s, Final: w.final[s]})
	}
	for _, s := range w.Steps {
		schema, _ := s.Schema() // checked by Build
		d.Transitions = append(d.Transitions, TransitionDescription{
			Name: s.Name, Doc: s.Doc, Start: s.Start, From: s.From, To: s.To,
			Roles: s.Roles, NotBy: s.NotBy, Guards: s.Guards,
			BusinessKey: s.Keyed, RefuseExisting: s.RefuseExisting, Payload: schema,
		})
	}
	return d
}
