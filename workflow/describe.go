package workflow

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// Description is what a definition says, for readers and for comparing two
// builds of it.
type Description struct {
	Name        string                  `json:"name"`
	Version     int                     `json:"version"`
	States      []StateDescription      `json:"states"`
	Transitions []TransitionDescription `json:"transitions"`
	Timers      []TimerDescription      `json:"timers,omitempty"`
	Roles       []string                `json:"roles,omitempty"`
	Attributes  []string                `json:"attributes,omitempty"`
}

// StateDescription is one state.
type StateDescription struct {
	Name    State               `json:"name"`
	Final   bool                `json:"final,omitempty"`
	Regions []RegionDescription `json:"regions,omitempty"` // of a composite state
}

// RegionDescription is a region of a composite state, or all states inside it if they exclude each other.
type RegionDescription struct {
	Name   string  `json:"name,omitempty"`
	States []State `json:"states"` // the first is the initial one
	Done   []State `json:"done,omitempty"`
}

// TransitionDescription is one declared transition.
type TransitionDescription struct {
	Name           string               `json:"name"`
	Doc            string               `json:"doc,omitempty"`
	Start          bool                 `json:"start,omitempty"`
	From           []State              `json:"from,omitempty"`
	To             []State              `json:"to"`
	Activity       *ActivityDescription `json:"activity,omitempty"`
	Roles          []string             `json:"roles,omitempty"`
	NotBy          []string             `json:"not_by,omitempty"`
	NotByLast      []string             `json:"not_by_last,omitempty"`
	Since          []string             `json:"since,omitempty"`
	Guards         []string             `json:"guards,omitempty"`
	BusinessKey    bool                 `json:"business_key,omitempty"`
	RefuseExisting bool                 `json:"refuse_existing,omitempty"`
	Auto           bool                 `json:"auto,omitzero"`      // taken as soon as it is enabled
	Internal       bool                 `json:"internal,omitzero"`  // not for callers
	Receives       []string             `json:"receives,omitempty"` // consumers of messages; not part of the hash
	Payload        jsontext.Value       `json:"payload"`            // JSON Schema, draft 2020-12
}

// ActivityDescription is what a transition does outside of the database.
// Durations are written as time.ParseDuration reads them: "1m30s".
type ActivityDescription struct {
	Via         State            `json:"via"`
	Failed      State            `json:"failed,omitempty"`      // "(stay)" is back
	FailedFrom  map[State]State  `json:"failed_from,omitempty"` // in its place: by the state in which the command was accepted
	Timeout     string           `json:"timeout"`               // of an attempt
	Retry       RetryDescription `json:"retry"`
	Concurrency int              `json:"concurrency,omitzero"` // on one node; 0 is unbounded
	Undo        bool             `json:"undo,omitzero"`        // it can be undone
	Check       bool             `json:"check,omitzero"`       // it can be found out whether it happened
	Undoes      []string         `json:"undoes,omitempty"`
	Settles     []string         `json:"settles,omitempty"` // they are no longer undone once it has succeeded
	AskOperator bool             `json:"ask_person,omitzero"`
}

// RetryDescription is how often and when failed work is tried again; see
// [Retry].
type RetryDescription struct {
	Attempts int    `json:"attempts"`
	First    string `json:"first"`
	Max      string `json:"max"`
}

// TimerDescription is one timer.
type TimerDescription struct {
	Name     string  `json:"name"`
	In       []State `json:"in"`
	After    string  `json:"after,omitempty"` // as in ActivityDescription
	FromData bool    `json:"from_data,omitzero"`
	Do       string  `json:"do"`
}

// Describe says what the workflow declares.
func (w *Workflow) Describe() Description {
	d := Description{Name: w.Name, Version: w.Version, Roles: w.Roles, Attributes: w.Attributes}
	for _, s := range w.States {
		d.States = append(d.States, StateDescription{Name: s, Final: w.final[s], Regions: w.regions[s]})
	}
	for _, s := range w.Steps {
		schema, _ := s.Schema() // checked by Build
		d.Transitions = append(d.Transitions, TransitionDescription{
			Name: s.Name, Doc: s.Doc, Start: s.Start, From: s.From, To: s.To, Activity: s.Work.describe(),
			Roles: s.Roles, NotBy: s.NotBy, NotByLast: s.NotByLast, Since: s.Since, Guards: s.Guards,
			BusinessKey: s.Keyed, RefuseExisting: s.RefuseExisting, Auto: s.Auto, Internal: s.Internal, Receives: s.consumers(),
			Payload: schema,
		})
	}
	for _, t := range w.Timers {
		d.Timers = append(d.Timers, t.describe())
	}
	return d
}

// consumers are those that the step receives from, each once.
func (s *Step) consumers() []string {
	var list []string
	for _, r := range s.Receives {
		if !slices.Contains(list, r.Consumer) {
			list = append(list, r.Consumer)
		}
	}
	return list
}

func (w *Work) describe() *ActivityDescription {
	if w == nil {
		return nil
	}
	return &ActivityDescription{
		Via: w.Via, Failed: w.Failed, FailedFrom: w.FailedFrom, Timeout: w.Timeout.String(),
		Retry:       RetryDescription{w.Retry.Attempts, w.Retry.First.String(), w.Retry.Max.String()},
		Concurrency: w.Concurrency, Undo: w.Undoable, Check: w.Checkable, Undoes: w.Undoes, Settles: w.Settles, AskOperator: w.AskOperator,
	}
}

func (t *Timer) describe() TimerDescription {
	d := TimerDescription{Name: t.Name, In: t.In, FromData: t.FromData(), Do: t.Do}
	if !d.FromData {
		d.After = t.After.String()
	}
	return d
}
