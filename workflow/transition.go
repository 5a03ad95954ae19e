package workflow

import (
	"reflect"
	"slices"
	"sync"

	"github.com/go-json-experiment/json"
)

// Part is a piece of a definition over data of type D, made by [Start],
// [On] or [Do].
type Part[D any] interface {
	step() *Step
	dataType(D) // ties the part to the data, so that the compiler refuses another's
}

// Transition is one declared transition of a workflow with data D, caused by a
// command with payload P. Its methods add to the declaration and return it.
type Transition[D, P any] struct {
	spec   Step
	action func(*Call, *D, P) error
	key    func(P) string
	guards []func(*Call, D) error

	// Set by step.
	schemaOf func() ([]byte, error)
	reading  json.Options // of a P
	shared   bool         // whether copies of a P share memory
}

// Start declares a transition that creates an instance in state to.
//
// The action receives zero data and the payload. It fills the data, or returns
// [Refuse] to refuse the command. Any other error is taken for a refusal too:
// an action is pure, so its errors can only be about the business.
func Start[D, P any](name string, to State, action func(c *Call, data *D, payload P) error) *Transition[D, P] {
	return newTransition(Step{Name: name, Start: true, To: []State{to}}, action)
}

// On declares a transition of an existing instance from one of the given states
// to state to. One name may be declared several times, with the same payload
// type and other states to leave, also as a [Do], and once as a [Start]: a command
// that names an instance is on that one, and one that names none creates one.
func On[D, P any](name string, from []State, to State, action func(c *Call, data *D, payload P) error) *Transition[D, P] {
	return newTransition(Step{Name: name, From: from, To: []State{to}}, action)
}

// Auto declares an automatic transition: whenever an instance is in one of the given states after a transition and the guards permit
// it, it is taken too, in the same commit. Of several the first declared is taken, then those that are enabled after it; 100 at most,
// more are a defect of the workflow. The audit row of the command names them, and what the action emits or starts is the command's. If
// the action refuses, so is the command. No caller can ask for an automatic transition.
func Auto[D any](name string, from []State, to State, action func(c *Call, data *D) error) *Transition[D, None] {
	t := newTransition(Step{Name: name, From: from, To: []State{to}, Auto: true, Internal: true},
		func(c *Call, data *D, _ None) error { return action(c, data) })
	if action == nil {
		t.action = nil
	}
	return t
}

func newTransition[D, P any](s Step, action func(*Call, *D, P) error) *Transition[D, P] {
	return &Transition[D, P]{spec: s, action: action}
}

// Or adds targets that the action may choose with [Call.Goto].
func (t *Transition[D, P]) Or(states ...State) *Transition[D, P] {
	t.spec.To = append(t.spec.To, states...)
	return t
}

// BusinessKey declares natural uniqueness: at most one instance of the workflow ever exists per tenant and key. A second creation with
// another idempotency key is answered with the existing instance; see [Transition.RefuseExisting]. Only for a [Start]. The key is 1 to 255
// bytes.
func (t *Transition[D, P]) BusinessKey(key func(P) string) *Transition[D, P] {
	t.key = key
	t.spec.Keyed = true
	return t
}

// RefuseExisting refuses a second creation with [AlreadyExists] instead of
// answering with the existing instance.
func (t *Transition[D, P]) RefuseExisting() *Transition[D, P] {
	t.spec.RefuseExisting = true
	return t
}

// Guard adds a condition on the data. A nil error permits the command; the text of an error is shown to the caller. Guards also decide
// which transitions are offered, before there is a payload; conditions on the payload belong in the action.
func (t *Transition[D, P]) Guard(name string, allow func(c *Call, data D) error) *Transition[D, P] {
	t.spec.Guards = append(t.spec.Guards, name)
	t.guards = append(t.guards, allow)
	return t
}

// Role lets only actors with one of the roles do this.
func (t *Transition[D, P]) Role(roles ...string) *Transition[D, P] {
	t.spec.Roles = append(t.spec.Roles, roles...)
	return t
}

// NotBy refuses an actor that did one of the named transitions on the same instance: separation of duties. The requester of an activity has
// done it while it is in flight and after its success, and after a failure only if it may have happened and has no [Activity.Undo].
func (t *Transition[D, P]) NotBy(transitions ...string) *Transition[D, P] {
	t.spec.NotBy = append(t.spec.NotBy, transitions...)
	return t
}

// NotByLast refuses the actor who was the last to do one of the named transitions on the
// same instance, and also who is doing it: of two who have changed a text in turn, the
// first may approve what the second made of it.
func (t *Transition[D, P]) NotByLast(transitions ...string) *Transition[D, P] {
	t.spec.NotByLast = append(t.spec.NotByLast, transitions...)
	return t
}

// Since limits NotBy and NotByLast to the current round: what happened before the last of the named transitions does not count. For
// example, NotBy("assess").Since("reopen") lets an assessor of the first round approve in the second one.
func (t *Transition[D, P]) Since(transitions ...string) *Transition[D, P] {
	t.spec.Since = append(t.spec.Since, transitions...)
	return t
}

// Internal keeps the transition from callers, whatever their roles: only timers, children, messages and schedules
// cause it. It is not offered.
func (t *Transition[D, P]) Internal() *Transition[D, P] {
	t.spec.Internal = true
	return t
}

// Doc describes the transition for readers of the API and the diagrams.
func (t *Transition[D, P]) Doc(text string) *Transition[D, P] {
	t.spec.Doc = text
	return t
}

// Hook attaches something that an engine runs with the transition; the engine
// says what. It exists so that this package needs to know no database.
func (t *Transition[D, P]) Hook(h Hook) *Transition[D, P] {
	t.spec.Hook = h
	return t
}

// step freezes the declaration: what is added to it later is not in the step.
func (t *Transition[D, P]) step() *Step {
	frozen := *t
	frozen.guards = slices.Clone(t.guards)
	frozen.schemaOf = sync.OnceValues(frozen.buildSchema)
	frozen.reading = readingOf[P]()
	frozen.shared = sharesMemory(reflect.TypeFor[P]())
	s := t.spec
	s.From, s.To = slices.Clone(s.From), slices.Clone(s.To)
	s.Roles, s.NotBy, s.NotByLast, s.Guards = slices.Clone(s.Roles), slices.Clone(s.NotBy), slices.Clone(s.NotByLast), slices.Clone(s.Guards)
	s.Since, s.Receives = slices.Clone(s.Since), slices.Clone(s.Receives)
	s.body = &frozen
	return &s
}

func (t *Transition[D, P]) dataType(D) {}
