package workflow

import (
	"fmt"
	"slices"
)

// An activity may take an instance back to where it came from, or to a state that depends on
// that, and several activities may have one name. Meanwhile the instance is in between, so where it
// came from is kept with the command, but only where the activity does not say it already.

// cameFrom is the state in which the command was accepted whose outcome is decided, or "" if it is unknown.
func (s *Step) cameFrom(f Facts) State {
	if len(s.From) == 1 {
		return s.From[0]
	}
	return f.From
}

// back makes Stay as a target of the outcome the state in which the command was accepted.
func (s *Step) back(c *Call, f Facts) {
	if c.to == Stay {
		c.to = s.cameFrom(f)
	}
	if c.to == "" {
		c.fail(fmt.Errorf("activity %q returns to the state of its command, which is not recorded", s.Name))
	}
}

// failedTo is where a failure takes an instance that came from a state. It may be Stay.
func (w *Work) failedTo(from State) State {
	if w.FailedFrom != nil {
		return w.FailedFrom[from]
	}
	return w.Failed
}

// Ends are the distinct states to which an activity takes an instance: by its result, and after a final failure.
func (s *Step) Ends() (done, failed []State) {
	add := func(list []State, to, from State) []State {
		if to == Stay {
			to = from
		}
		if to == "" || slices.Contains(list, to) { // "" is a mistake of its own
			return list
		}
		return append(list, to)
	}
	for _, to := range s.To {
		if to != Stay {
			done = add(done, to, "")
			continue
		}
		for _, from := range s.From {
			done = add(done, Stay, from)
		}
	}
	if len(s.From) == 0 && s.Work.Failed != Stay { // a mistake, but no reason to report another one
		failed = add(failed, s.Work.Failed, "")
	}
	for _, from := range s.From {
		failed = add(failed, s.Work.failedTo(from), from)
	}
	return done, failed
}

// keepsFrom reports whether what becomes of the activity depends on where an instance came from.
func (s *Step) keepsFrom() bool {
	return len(s.From) > 1 && (s.Work.FailedFrom != nil || s.Work.Failed == Stay || slices.Contains(s.To, Stay))
}

// reaches are the states that the step can take an instance to, sooner or later:
// the in-between state first, if there is one.
func (s *Step) reaches() []State {
	if s.Work == nil {
		return s.To
	}
	done, failed := s.Ends()
	return slices.Concat([]State{s.Work.Via}, done, failed)
}
