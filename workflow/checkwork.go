package workflow

import "slices"

// checkWork looks for the mistakes around in-between states: those of the step's
// own activity, and a way into one that no activity leads out of.
func (w *Workflow) checkWork(m *Mistakes, s *Step) {
	into := s.To
	if s.Work != nil {
		w.checkActivity(m, s)
		into = s.reaches()[1:] // without its own
	}
	for _, to := range into {
		remains := to == Stay || s.Work == nil && slices.Equal(s.From, []State{to})
		if a := w.underWay(to); a != nil && !remains {
			m.add("transition %q leads to state %q, where an instance is only while %q is under way", s.Name, to, a.Name)
		}
	}
}

func (w *Workflow) checkActivity(m *Mistakes, s *Step) {
	for _, text := range s.Work.body.mistakes() {
		m.add("activity %q %s", s.Name, text)
	}
	via := s.Work.Via
	switch {
	case via == Stay:
		m.add("activity %q is under way in %q, which is a target, not a state", s.Name, Stay)
	case w.final[via]:
		m.add("activity %q is under way in state %q, which is final", s.Name, via)
	case slices.Contains(s.From, via):
		m.add("activity %q leaves state %q, where it is under way itself", s.Name, via)
	}
	if s.Work.FailedFrom == nil && s.Work.Failed == "" {
		m.add("activity %q does not declare the state after a final failure: declare OrElse", s.Name)
	}
	for _, from := range s.From {
		if s.Work.FailedFrom != nil && s.Work.FailedFrom[from] == "" {
			m.add("activity %q does not declare the state after a final failure for instances from %q", s.Name, from)
		}
	}
	if s.Work.Timeout < 0 {
		m.add("activity %q has a negative timeout: %s", s.Name, s.Work.Timeout)
	}
	if s.Work.Concurrency < 0 {
		m.add("activity %q has a negative concurrency: %d", s.Name, s.Work.Concurrency)
	}
	r := s.Work.Retry
	if r.Attempts < 0 {
		m.add("activity %q has a negative number of attempts: %d", s.Name, r.Attempts)
	}
	switch {
	case min(r.First, r.Max) < 0:
		m.add("activity %q waits a negative time between attempts: %s", s.Name, min(r.First, r.Max))
	case r.First > r.Max:
		m.add("activity %q waits up to %s after its first failure, and never longer than %s", s.Name, r.First, r.Max)
	}
	for i, other := range s.Work.Undoes {
		switch {
		case slices.Contains(s.Work.Undoes[:i], other):
			m.add("activity %q undoes %q twice", s.Name, other)
		case len(w.byName[other]) == 0:
			m.add("activity %q undoes %q, which does not exist", s.Name, other)
		case !slices.ContainsFunc(w.byName[other], func(o *Step) bool { return o.Work != nil && o.Work.Undoable }):
			m.add("activity %q undoes %q, which declares no Undo", s.Name, other)
		}
	}
	for i, other := range s.Work.Settles {
		switch {
		case slices.Contains(s.Work.Settles[:i], other):
			m.add("activity %q settles %q twice", s.Name, other)
		case len(w.byName[other]) == 0:
			m.add("activity %q settles %q, which does not exist", s.Name, other)
		case !w.UndoneByOthers(other):
			m.add("activity %q settles %q, which no activity undoes", s.Name, other)
		}
	}
}

// checkConcurrency looks for limits that differ: attempts are counted by the name of their activity.
func checkConcurrency(m *Mistakes, name string, steps []*Step) {
	var first *Work
	for _, s := range steps {
		switch {
		case s.Work == nil:
		case first == nil:
			first = s.Work
		case s.Work.Concurrency != first.Concurrency:
			m.add("activity %q is declared with concurrency %d and with %d; one name has one limit", name, first.Concurrency, s.Work.Concurrency)
		}
	}
}

// underWay returns an activity that has the state as its in-between state, or
// nil.
func (w *Workflow) underWay(state State) *Step {
	for _, s := range w.Steps {
		if s.Work != nil && s.Work.Via == state {
			return s
		}
	}
	return nil
}

func activities(steps []*Step) int {
	n := 0
	for _, s := range steps {
		if s.Work != nil {
			n++
		}
	}
	return n
}
