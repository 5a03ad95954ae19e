package workflow

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/workflow/internal/unknown"
)

// Step is a transition with its types erased: what an engine works with. Its
// exported fields are for reading.
type Step struct {
	Name           string
	Doc            string
	Start          bool
	From           []State
	To             []State // the first is where it goes unless the action says otherwise
	Roles          []string
	NotBy          []string
	NotByLast      []string
	Since          []string // NotBy and NotByLast count what happened after the last of these
	Guards         []string
	Keyed          bool // creation by business key
	RefuseExisting bool
	Auto           bool // taken as soon as it is enabled; see the function Auto
	Internal       bool // not for callers; see Transition.Internal
	Hook           Hook
	Work           *Work        // what it does outside of the database; nil: it is done at once
	Receives       []*Reception // the messages from outside that cause it
	body           body
	gone           map[string]bool // see Definition.DataChanged
}

// Hook is something that an engine runs with a transition.
type Hook any

// Payload is a decoded and validated payload.
type Payload struct {
	value any
	raw   []byte // the payload's JSON, where actions could change value for one another
	key   string
}

// BusinessKey is the key that the payload of a keyed creation names, else "".
func (p Payload) BusinessKey() string { return p.key }

// Outcome is what a step decided.
type Outcome struct {
	To     State
	Data   []byte // the data after the transition, JSON
	Result []byte // what the action returned to the caller, JSON, or nil
	Reason string
	Events []Emitted
	Spawns []Spawned

	// KeepAnswer is how long the answer is replayed at least; see Call.KeepAnswer.
	KeepAnswer time.Duration
}

// body is the typed part of a step.
type body interface {
	decode(raw []byte) (Payload, error)
	guard(c *Call, data []byte) []error
	act(c *Call, data []byte, p Payload) ([]byte, error)
	typed(data []byte, p Payload) (any, any, error)
	schema() ([]byte, error)
	payloadType() reflect.Type
	incomplete() []string
}

var (
	// Instance data is written once per transition and hashed, so its encoding
	// must not depend on the order of a map.
	jsonOut = json.JoinOptions(json.Deterministic(true), jsontext.EscapeForHTML(false))
	// Data read back may have been written by an earlier build of the workflow.
	jsonData    = json.JoinOptions(json.RejectUnknownMembers(false))
	jsonKnown   = json.JoinOptions(json.RejectUnknownMembers(true))
	jsonPayload = json.JoinOptions(json.RejectUnknownMembers(true))
)

// Decode turns a payload into its Go type and validates it. An empty payload is
// an empty object. The error is an *Error with code InvalidPayload and a field
// for everything that is wrong.
func (s *Step) Decode(raw []byte) (Payload, error) { return s.body.decode(raw) }

// Check runs the guards alone, for "what can be done now", and returns every
// refusal. It does not look at states, roles or payload.
func (s *Step) Check(f Facts, data []byte) []error {
	return s.body.guard(s.call(f, s.accepted()), data)
}

// Run decides: guards, then the action, on a copy of the data that it decodes
// anew. A step with Work is accepted by it and goes to Via. The error is an
// *Error: GuardRefused with the refusal's text, Internal for a defect of the
// workflow, or NotOnThisNode for data that another build may know more of. Run does not recover panics.
func (s *Step) Run(f Facts, data []byte, p Payload) (Outcome, error) {
	if refusals := s.Check(f, data); len(refusals) > 0 {
		return Outcome{}, oneRefusal(refusals)
	}
	c := s.call(f, s.accepted()) // of its own: what a guard asks for has no effect
	after, err := s.body.act(c, data, p)
	return s.outcome(c, f, after, err)
}

// accepted are the targets of the step's action.
func (s *Step) accepted() []State {
	if s.Work != nil {
		return []State{s.Work.Via}
	}
	return s.To
}

// outcome is what an action came to: its error, unless it misused the Call.
func (s *Step) outcome(c *Call, f Facts, after []byte, err error) (Outcome, error) {
	if c.err != nil {
		return Outcome{}, &Error{Code: Internal, Message: "the workflow's code failed", Cause: c.err}
	}
	if open, ok := errors.AsType[*unknown.Ambiguous](err); ok {
		return Outcome{}, notKept(open, f.State)
	}
	if err != nil {
		return Outcome{}, refusal(err)
	}
	if c.to == Stay {
		c.to = f.State
	}
	return Outcome{To: c.to, Data: after, Result: c.result, Reason: c.reason, KeepAnswer: c.keep, Events: c.events, Spawns: c.spawns}, nil
}

// notKept says that another node may know the members that could not be kept.
func notKept(open *unknown.Ambiguous, state State) *Error {
	text := fmt.Sprintf("the data has members that this node does not know, and could not keep in the elements of %q; "+
		"another node may know them", strings.TrimSuffix(open.Path, "/*"))
	return &Error{Code: NotOnThisNode, State: state, Message: text, Cause: open}
}

// Typed returns the data and the payload as their Go values, for a Hook.
func (s *Step) Typed(data []byte, p Payload) (dataValue, payloadValue any, err error) {
	return s.body.typed(data, p)
}

func (s *Step) call(f Facts, targets []State) *Call {
	return &Call{facts: f, step: s, targets: targets, to: targets[0]}
}

// refusal makes any error of a guard or an action a refusal. An *Error keeps
// its code only where that code is final: an action cannot choose to be
// retried.
func refusal(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok && (e.Code == GuardRefused || e.Code == Internal || errors.Is(e, ErrUnreadable)) {
		return e
	}
	return &Error{Code: GuardRefused, Message: cmp.Or(err.Error(), "the workflow refuses it")}
}

// oneRefusal tells the caller about all guards at once.
func oneRefusal(refusals []error) error {
	var text []string
	for _, r := range refusals {
		e := refusal(r)
		if e.Code != GuardRefused {
			return e
		}
		text = append(text, e.Message)
	}
	return &Error{Code: GuardRefused, Message: strings.Join(text, "; ")}
}

func (t *Transition[D, P]) guard(c *Call, data []byte) []error {
	if len(t.guards) == 0 {
		return nil
	}
	d, err := decodeData[D](data)
	if err != nil {
		return []error{err}
	}
	var refusals []error
	for i, allow := range t.guards {
		if err := allow(c, d); err != nil {
			if err.Error() == "" {
				err = errors.New(t.spec.Guards[i])
			}
			refusals = append(refusals, refusal(err))
		}
	}
	return refusals
}

func (t *Transition[D, P]) act(c *Call, data []byte, p Payload) ([]byte, error) {
	payload, err := t.fresh(p)
	if err != nil {
		return nil, err
	}
	return change(c, data, func(d *D) error { return t.action(c, d, payload) })
}

// change runs an action on a freshly decoded copy of the data. Members that D does not know are kept.
func change[D any](c *Call, data []byte, action func(*D) error) ([]byte, error) {
	d, before, err := decodeToChange[D](data)
	if err != nil {
		return nil, err
	}
	if err := action(&d); err != nil {
		return nil, err
	}
	after, err := encodeData(&d)
	if err != nil || before == nil {
		return after, err
	}
	return unknown.Keep(&d, data, before, after, c.step.gone)
}

// decodeToChange reads the data. before is what D says of it, for unknown.Keep, where that is not all; else nil.
func decodeToChange[D any](data []byte) (d D, before []byte, err error) {
	if len(data) == 0 {
		return d, nil, nil
	}
	if err = json.Unmarshal(data, &d, jsonKnown); err == nil {
		return d, nil, nil
	}
	if d, err = decodeData[D](data); err != nil {
		return d, nil, err
	}
	if before, err = unknown.Encode(&d); err != nil {
		return d, nil, encodeFailure(err)
	}
	return d, before, nil
}

func encodeData[D any](d *D) ([]byte, error) {
	raw, err := json.Marshal(d, jsonOut)
	if err != nil {
		return nil, encodeFailure(err)
	}
	return raw, nil
}

func encodeFailure(err error) error {
	return &Error{Code: Internal, Message: "the workflow's data cannot be encoded", Cause: err}
}

func (t *Transition[D, P]) typed(data []byte, p Payload) (any, any, error) {
	d, err := decodeData[D](data)
	if err != nil {
		return nil, nil, err
	}
	payload, err := t.fresh(p)
	return d, payload, err
}

func (t *Transition[D, P]) incomplete() []string {
	var missing []string
	if t.action == nil {
		missing = append(missing, "has no action")
	}
	for i, g := range t.guards {
		if g == nil {
			missing = append(missing, fmt.Sprintf("has guard %q without a function", t.spec.Guards[i]))
		}
	}
	if t.spec.Keyed && t.key == nil {
		missing = append(missing, "has a business key without a function")
	}
	return missing
}

// ErrUnreadable is wrapped by the errors of a step and of [Work.Do], [Work.Check] and [Work.Undo] that say: this build cannot read the data
// of the instance. Nothing was done, and another build may be able to.
var ErrUnreadable = errors.New("the data is not of this build's type")

// decodeData reads the data of an instance; nothing is the zero value.
func decodeData[D any](raw []byte) (D, error) {
	d, err := decodeStored[D]("data", raw)
	if err != nil {
		return d, &Error{Code: NotOnThisNode, Cause: fmt.Errorf("%w: %w", ErrUnreadable, err),
			Message: "this node cannot read the data of the instance (" + pointerOfStored(err) + "); another node may"}
	}
	return d, nil
}

// decodeStored reads what an engine has kept; nothing is the zero value.
func decodeStored[T any](what string, raw []byte) (T, error) {
	var v T
	if len(raw) == 0 {
		return v, nil
	}
	if err := json.Unmarshal(raw, &v, jsonData); err != nil {
		return v, &Error{Code: Internal, Message: "the stored " + what + " does not fit the workflow", Cause: err}
	}
	return v, nil
}

// Leaves reports whether the step may leave the state.
func (s *Step) Leaves(state State) bool { return slices.Contains(s.From, state) }
