package workflow

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Mistakes is every mistake of a definition, in the order in which a reader
// would meet them.
type Mistakes struct {
	Workflow string
	List     []string
}

// Error lists the mistakes, one on a line.
func (m *Mistakes) Error() string {
	count := fmt.Sprintf("%d mistakes", len(m.List))
	if len(m.List) == 1 {
		count = "a mistake"
	}
	return fmt.Sprintf("workflow %q has %s:\n  - %s", m.Workflow, count, strings.Join(m.List, "\n  - "))
}

func (m *Mistakes) add(format string, args ...any) {
	m.List = append(m.List, fmt.Sprintf(format, args...))
}

var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)

// reserved are the names that the REST interface uses in a transition's place.
var reserved = []string{"children", "history", "transitions", "diagram", "keys"}

// ownNames are what the scopes of Pawl's own commands begin with, as default
// scopes begin with the workflow's name.
var ownNames = []string{"pawl", "ops", "inbox"}

func (w *Workflow) check(m *Mistakes) {
	w.checkNames(m)
	for _, s := range w.Steps {
		w.checkStep(m, s)
		w.checkWork(m, s)
		s.checkReceives(m)
	}
	w.checkAmbiguity(m)
	if len(w.regions) == 0 || w.tree != nil { // otherwise its states are not known
		w.checkGraph(m)
	}
	w.checkRoles(m)
	w.checkTimers(m)
}

func (w *Workflow) checkNames(m *Mistakes) {
	if !nameForm.MatchString(w.Name) {
		m.add("the workflow's name %q is not 1 to 64 of a-z, 0-9, _ and -", w.Name)
	}
	if slices.Contains(ownNames, w.Name) {
		m.add("the workflow cannot be named %q: scopes that begin so are Pawl's own", w.Name)
	}
	if w.Version < 1 {
		m.add("the version is %d; versions count from 1", w.Version)
	}
	for _, s := range w.States {
		if !nameForm.MatchString(string(s)) {
			m.add("the state's name %q is not 1 to 64 of a-z, 0-9, _ and -", s)
		}
	}
	seen := map[string]bool{}
	for _, a := range w.Attributes {
		if !nameForm.MatchString(a) {
			m.add("the attribute's name %q is not 1 to 64 of a-z, 0-9, _ and -", a)
		}
		if seen[a] {
			m.add("attribute %q is declared twice", a)
		}
		seen[a] = true
	}
}

func (w *Workflow) checkStep(m *Mistakes, s *Step) {
	switch {
	case !nameForm.MatchString(s.Name):
		m.add("the transition's name %q is not 1 to 64 of a-z, 0-9, _ and -", s.Name)
	case slices.Contains(reserved, s.Name):
		m.add("a transition cannot be named %q: the REST interface uses that name", s.Name)
	}
	s.checkStates(m)
	if s.Keyed && !s.Start {
		m.add("transition %q declares a business key, but it creates nothing", s.Name)
	}
	if s.RefuseExisting && !s.Keyed {
		m.add("transition %q refuses existing instances, but has no business key", s.Name)
	}
	excluding := slices.Concat(s.NotBy, s.NotByLast)
	if s.Start && len(excluding) > 0 {
		m.add("transition %q creates the instance, so %q cannot have happened before", s.Name, excluding[0])
	}
	if s.Auto && (len(s.Roles) > 0 || len(excluding) > 0) {
		m.add("transition %q is automatic, so it has no actor who could have a role or be excluded", s.Name)
	}
	if s.Auto && s.Hook != nil {
		m.add("transition %q is automatic, and a hook runs only with the transition of a command", s.Name)
	}
	if s.Internal && s.Start {
		m.add("transition %q creates the instance, so it cannot be internal", s.Name)
	}
	if len(s.Since) > 0 && len(excluding) == 0 {
		m.add("transition %q has a Since without NotBy or NotByLast", s.Name)
	}
	for _, n := range s.Since {
		if len(w.byName[n]) == 0 {
			m.add("transition %q counts since %q, which does not exist", s.Name, n)
		}
	}
	for _, n := range excluding {
		if len(w.byName[n]) == 0 {
			m.add("transition %q excludes the actors of %q, which does not exist", s.Name, n)
		}
	}
	for _, missing := range s.body.incomplete() {
		m.add("transition %q %s", s.Name, missing)
	}
	if slices.Contains(s.Guards, "") {
		m.add("transition %q has a guard without a name", s.Name)
	}
	if !utf8.ValidString(s.Doc + strings.Join(s.Guards, "")) {
		m.add("transition %q has a Doc or a guard's name that is not UTF-8", s.Name)
	}
	if _, err := s.Schema(); err != nil {
		m.add("transition %q: payload %s has no JSON Schema: %v", s.Name, s.body.payloadType(), err)
	}
}

func (s *Step) checkStates(m *Mistakes) {
	if !s.Start && len(s.From) == 0 {
		m.add("transition %q leaves no state", s.Name)
	}
	if s.Start && slices.Contains(s.To, Stay) {
		m.add("transition %q creates the instance, so it cannot stay in a state", s.Name)
	}
	if slices.Contains(s.From, Stay) {
		m.add("transition %q leaves %q, which is a target, not a state", s.Name, Stay)
	}
	if dup := firstDuplicate(s.From); dup != "" {
		m.add("transition %q names state %q twice in From", s.Name, dup)
	}
	if dup := firstDuplicate(s.To); dup != "" {
		m.add("transition %q names target %q twice", s.Name, dup)
	}
}

func (w *Workflow) checkAmbiguity(m *Mistakes) {
	for _, name := range w.names() {
		steps := w.byName[name]
		var from []State
		for i, s := range steps {
			from = append(from, s.From...)
			if i > 0 && s.body.payloadType() != steps[0].body.payloadType() {
				m.add("transition %q is declared with payload %s and with %s; one name has one payload",
					name, steps[0].body.payloadType(), s.body.payloadType())
			}
			if s.Start && s != w.Creating(name) {
				m.add("transition %q creates instances and is declared so twice; one name has one start", name)
			}
		}
		checkConcurrency(m, name, steps)
		if len(steps) > 1 {
			if dup := firstDuplicate(from); dup != "" {
				m.add("transition %q is ambiguous: two declarations leave state %q", name, dup)
			}
		}
	}
}

func (w *Workflow) names() []string {
	var names []string
	for _, s := range w.Steps {
		if !slices.Contains(names, s.Name) {
			names = append(names, s.Name)
		}
	}
	return names
}

// checkGraph looks for states that nothing reaches, states that nothing leaves,
// and final states that something leaves.
func (w *Workflow) checkGraph(m *Mistakes) {
	starts := slices.ContainsFunc(w.Steps, func(s *Step) bool { return s.Start })
	if !starts {
		m.add("nothing starts it: declare a workflow.Start")
	}
	reached := w.reached()
	for _, s := range w.States {
		if !reached[s] && starts {
			m.add("state %q cannot be reached from a start", s)
		}
		leaves := w.leaves(s)
		switch {
		case w.final[s] && len(leaves) > 0:
			m.add("state %q is final, but %q leaves it", s, leaves[0])
		case !w.final[s] && len(leaves) == 0 && w.underWay(s) == nil:
			m.add("state %q is a dead end: nothing leaves it and it is not declared final", s)
		}
	}
	for _, f := range w.Finals {
		if !slices.Contains(w.States, f) {
			m.add("final state %q is unknown: no transition mentions it", f)
		}
	}
	if dup := firstDuplicate(w.Finals); dup != "" {
		m.add("state %q is declared final twice", dup)
	}
}

// leaves lists the names of the transitions that leave a state, those inside it not included.
func (w *Workflow) leaves(state State) (names []string) {
	around := w.within(state)
	for _, s := range w.Steps {
		if slices.ContainsFunc(s.From, around.Has) {
			names = append(names, s.Name)
		}
	}
	return names
}

// reached are the states that an instance can come to.
func (w *Workflow) reached() map[State]bool {
	reached := map[State]bool{}
	for changed := true; changed; {
		changed = w.reachInside(reached)
		for _, s := range w.Steps {
			if !s.Start && !slices.ContainsFunc(s.From, func(f State) bool { return reached[f] }) {
				continue
			}
			for _, to := range s.reaches() {
				changed = changed || !reached[to]
				reached[to] = true
			}
		}
	}
	return reached
}

// reachInside adds the states that are active together with reached ones, and reports whether there were any to add.
func (w *Workflow) reachInside(reached map[State]bool) (changed bool) {
	if w.tree == nil {
		return false
	}
	for _, s := range w.States {
		if !reached[s] {
			continue
		}
		for _, active := range w.Take("", Move{To: s}).Active() {
			changed = changed || !reached[active]
			reached[active] = true
		}
	}
	return changed
}

func (w *Workflow) checkRoles(m *Mistakes) {
	for _, s := range w.Steps {
		for _, r := range s.Roles {
			if !slices.Contains(w.Roles, r) {
				m.add("transition %q requires role %q, which is not among the declared Roles", s.Name, r)
			}
		}
	}
	for _, r := range w.Roles {
		if !nameForm.MatchString(r) {
			m.add("the role's name %q is not 1 to 64 of a-z, 0-9, _ and -", r)
		}
	}
}

func firstDuplicate(states []State) State {
	for i, s := range states {
		if slices.Contains(states[:i], s) {
			return s
		}
	}
	return ""
}
