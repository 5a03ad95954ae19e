package workflow

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// Defaults of an activity.
const (
	defaultAttempts = 10
	defaultFirst    = time.Second
	defaultMax      = 5 * time.Minute
	defaultTimeout  = time.Minute
)

// Activity is a declared transition of a workflow with data D that does
// something outside of the database. It is caused by a command with payload P,
// and its work has the result R. Its methods add to the declaration and return
// it.
type Activity[D, P, R any] struct {
	accepting Transition[D, P] // its action is that of the accept
	spec      Work
	work      func(context.Context, *Attempt, D, P) (R, error)
	ended     func(*Call, *D, R) error
	failed    func(*Call, *D, Failure) error
	elseTo    func(from State) State
	undoing   func(context.Context, *Attempt, D, P, *R) error
	checking  func(context.Context, *Attempt, D, P) (*R, error)
}

// Do declares a transition that takes time and touches the world: a charge, a
// letter, a call of another service. A command is accepted in one of the states
// from, and brings the instance into the state via, where it is while the work
// is under way. The work's result then takes it to state to.
//
// One name may be declared several times, as with [On], each with work of its own;
// only the limit of [Activity.Concurrency] is one for all.
//
// The work runs outside of every transaction, and may run more than once: an
// attempt can fail, or its worker can be lost when the effect has happened
// already. So it hands [Attempt.Key] to a provider that honours idempotency
// keys, or declares [Activity.Check], or [Activity.AskOperator]. It gets the data
// as they were when the attempt began, and stops when ctx is done.
//
// done makes the result a part of the data. It is pure, as every action is, and
// may choose another target; an error refuses the result, and the work has
// failed with [FailureRefused]. [Stay] as a target is the state in which the
// command was accepted.
func Do[D, P, R any](name string, from []State, via, to State,
	work func(ctx context.Context, a *Attempt, data D, payload P) (R, error),
	done func(c *Call, data *D, result R) error,
) *Activity[D, P, R] {
	return &Activity[D, P, R]{
		accepting: *newTransition(Step{Name: name, From: from, To: []State{to}},
			func(*Call, *D, P) error { return nil }),
		spec: Work{Via: via}, work: work, ended: done,
	}
}

// Accept adds an action to the accept: it may refuse the command, or reserve
// something in the data. It cannot choose a target, and has no result of its
// own: [Call.Goto] and [Call.Return] are for done.
func (a *Activity[D, P, R]) Accept(action func(c *Call, data *D, payload P) error) *Activity[D, P, R] {
	a.accepting.action = action
	return a
}

// OrElse declares the state after a final failure of the work; fail may record the reason. [Stay] returns the instance to the state in
// which the command was accepted. Every activity needs an OrElse or an [Activity.OrElseFrom]. fail cannot refuse: its error is a defect of
// the workflow.
func (a *Activity[D, P, R]) OrElse(state State, fail func(c *Call, data *D, f Failure) error) *Activity[D, P, R] {
	a.spec.Failed, a.spec.FailedFrom, a.elseTo, a.failed = state, nil, nil, fail
	return a
}

// OrElseFrom is [Activity.OrElse] where it depends on the state in which the command
// was accepted. to is asked for each of the states that the activity may leave, once,
// when the definition is built.
func (a *Activity[D, P, R]) OrElseFrom(to func(from State) State, fail func(c *Call, data *D, f Failure) error) *Activity[D, P, R] {
	a.spec.Failed, a.spec.FailedFrom, a.elseTo, a.failed = "", map[State]State{}, to, fail
	return a
}

// Or adds targets that done may choose with [Call.Goto].
func (a *Activity[D, P, R]) Or(states ...State) *Activity[D, P, R] {
	a.accepting.Or(states...)
	return a
}

// Guard adds a condition on the accept; see [Transition.Guard].
func (a *Activity[D, P, R]) Guard(name string, allow func(c *Call, data D) error) *Activity[D, P, R] {
	a.accepting.Guard(name, allow)
	return a
}

// Role lets only actors with one of the roles ask for this.
func (a *Activity[D, P, R]) Role(roles ...string) *Activity[D, P, R] {
	a.accepting.Role(roles...)
	return a
}

// NotBy refuses an actor who did one of the named transitions on the same
// instance: separation of duties; see [Transition.NotBy].
func (a *Activity[D, P, R]) NotBy(transitions ...string) *Activity[D, P, R] {
	a.accepting.NotBy(transitions...)
	return a
}

// NotByLast refuses the actor who was the last to do one of the named transitions; see
// [Transition.NotByLast].
func (a *Activity[D, P, R]) NotByLast(transitions ...string) *Activity[D, P, R] {
	a.accepting.NotByLast(transitions...)
	return a
}

// Since limits NotBy and NotByLast to the current round; see [Transition.Since].
func (a *Activity[D, P, R]) Since(transitions ...string) *Activity[D, P, R] {
	a.accepting.Since(transitions...)
	return a
}

// Internal keeps the activity from callers; see [Transition.Internal].
func (a *Activity[D, P, R]) Internal() *Activity[D, P, R] {
	a.accepting.Internal()
	return a
}

// Doc describes the activity for readers of the API and the diagrams.
func (a *Activity[D, P, R]) Doc(text string) *Activity[D, P, R] {
	a.accepting.Doc(text)
	return a
}

// Retry says how often and when failed work is tried again. Without it there are
// 10 attempts.
func (a *Activity[D, P, R]) Retry(r Retry) *Activity[D, P, R] {
	a.spec.Retry = r
	return a
}

// Timeout bounds an attempt; its context is done then. Without it an attempt has
// a minute.
func (a *Activity[D, P, R]) Timeout(d time.Duration) *Activity[D, P, R] {
	a.spec.Timeout = d
	return a
}

// Concurrency bounds how many attempts run at once on one node.
func (a *Activity[D, P, R]) Concurrency(n int) *Activity[D, P, R] {
	a.spec.Concurrency = n
	return a
}

// AskOperator is for effects that cannot be made idempotent: an attempt that ended without a result is not repeated, but waits for an
// operator, unless [Activity.Check] can determine the outcome. Only a final error, by [Final] or [Retry], or one of [NotDone] proves that
// nothing has happened; any other may come from a lost answer.
func (a *Activity[D, P, R]) AskOperator() *Activity[D, P, R] {
	a.spec.AskOperator = true
	return a
}

// Undo declares how the effect is taken back: when the instance has left the
// in-between state meanwhile, or when a later activity that [Activity.Undoes]
// this one has failed. result is nil when it is not known whether the effect
// happened; undoing what has not happened must do no harm. It is retried as the
// work is.
func (a *Activity[D, P, R]) Undo(undo func(ctx context.Context, a *Attempt, data D, payload P, result *R) error) *Activity[D, P, R] {
	a.undoing, a.spec.Undoable = undo, true
	return a
}

// Check declares how to find out whether an attempt with an unknown outcome had its effect: it returns the result, or nil if it has not
// happened. It is called before the work is retried, and once more after the last attempt.
func (a *Activity[D, P, R]) Check(check func(ctx context.Context, a *Attempt, data D, payload P) (*R, error)) *Activity[D, P, R] {
	a.checking, a.spec.Checkable = check, true
	return a
}

// Undoes declares that a final failure of this work undoes the earlier effects of the named activities on the same instance. The instance
// keeps the payload and the result of up to 1000 of them for that, and accepts no more once they have a megabyte in total: such a command
// is refused with [TooManyEffects]. See [Activity.Settles] for work that uses up effects.
func (a *Activity[D, P, R]) Undoes(transitions ...string) *Activity[D, P, R] {
	a.spec.Undoes = append(a.spec.Undoes, transitions...)
	return a
}

// Settles declares that the success of this work uses up what the named activities did earlier on the same instance: no later failure
// undoes it. Each must have an Undo, and be undone by some activity (see [Activity.Undoes]). A payment, for example, settles
// the reserve that it pays from: if the claim is opened again and the next payment fails, only the reserves made since are released.
//
// The success that counts is the one that takes the instance on. A failure settles nothing, and neither does work whose instance has
// left the in-between state meanwhile.
func (a *Activity[D, P, R]) Settles(transitions ...string) *Activity[D, P, R] {
	a.spec.Settles = append(a.spec.Settles, transitions...)
	return a
}

// step freezes the declaration, as that of a Transition does.
func (a *Activity[D, P, R]) step() *Step {
	frozen := *a
	w := a.spec
	w.Undoes, w.Settles = slices.Clone(w.Undoes), slices.Clone(w.Settles)
	w.Timeout = cmp.Or(w.Timeout, defaultTimeout)
	w.Retry.Attempts = cmp.Or(w.Retry.Attempts, defaultAttempts)
	w.Retry.First = cmp.Or(w.Retry.First, defaultFirst)
	w.Retry.Max = cmp.Or(w.Retry.Max, max(defaultMax, w.Retry.First))
	w.body = &frozen
	s := a.accepting.step()
	if a.elseTo != nil {
		w.FailedFrom = make(map[State]State, len(s.From))
		for _, from := range s.From {
			w.FailedFrom[from] = a.elseTo(from)
		}
	}
	s.Work = &w
	return s
}

func (a *Activity[D, P, R]) dataType(D) {}
