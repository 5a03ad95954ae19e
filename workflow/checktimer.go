package workflow

import (
	"errors"
	"slices"
	"strings"
)

func (w *Workflow) checkTimers(m *Mistakes) {
	seen := map[string]bool{}
	for _, t := range w.Timers {
		if !nameForm.MatchString(t.Name) {
			m.add("the timer's name %q is not 1 to 64 of a-z, 0-9, _ and -", t.Name)
		}
		if seen[t.Name] {
			m.add("timer %q is declared twice", t.Name)
		}
		seen[t.Name] = true
		if t.After < 0 {
			m.add("timer %q fires after a negative time: %s", t.Name, t.After)
		}
		if len(t.In) == 0 {
			m.add("timer %q runs in no state", t.Name)
		}
		if dup := firstDuplicate(t.In); dup != "" {
			m.add("timer %q names state %q twice", t.Name, dup)
		}
		for _, s := range t.In {
			switch {
			case !slices.Contains(w.States, s):
				m.add("timer %q runs in state %q, which is unknown: no transition mentions it", t.Name, s)
			case w.final[s]:
				m.add("timer %q runs in state %q, which is final: nothing happens there", t.Name, s)
			}
		}
		w.checkTimerAction(m, t)
	}
}

// checkTimerAction looks at the transition that the timer causes.
func (w *Workflow) checkTimerAction(m *Mistakes, t *Timer) {
	steps := w.Moving(t.Do)
	switch {
	case len(w.byName[t.Do]) == 0:
		m.add("timer %q does %q, which does not exist", t.Name, t.Do)
		return
	case len(steps) == 0:
		m.add("timer %q does %q, which creates an instance", t.Name, t.Do)
		return
	}
	for _, s := range t.In {
		if slices.Contains(w.States, s) && !w.final[s] && w.Leaving(t.Do, s) == nil {
			m.add("timer %q does %q, which does not leave state %q", t.Name, t.Do, s)
		}
	}
	if _, err := steps[0].Schema(); err != nil {
		return // a mistake of the transition
	}
	if _, err := steps[0].Decode(nil); err != nil {
		m.add("timer %q does %q with an empty payload, which it refuses: %s", t.Name, t.Do, problems(err))
	}
}

// problems says what is wrong with a payload, on one line.
func problems(err error) string {
	e, ok := errors.AsType[*Error](err)
	if !ok || len(e.Fields) == 0 {
		return err.Error()
	}
	var said []string
	for _, f := range e.Fields {
		said = append(said, strings.TrimSpace(f.Pointer+" "+f.Message))
	}
	return strings.Join(said, ", ")
}
