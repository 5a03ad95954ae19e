package workflow

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pawlhq/pawl/internal/schemagen"
)

// Migration takes instances of one version of a workflow to another one: a plan that was checked with both. It is
// immutable and safe for concurrent use.
type Migration struct {
	From, To *Workflow

	states map[State]State // of every state in which an instance can be taken
	plan   *plan
}

// MigrationOf checks the plan by which instances of one version come to another one; nil, where that declares none. Its error
// lists every mistake; see [Mistakes].
func MigrationOf(from, to *Workflow) (*Migration, error) {
	p := to.plans[from.Version]
	if p == nil {
		return nil, nil
	}
	m := &Migration{From: from, To: to, states: map[State]State{}, plan: p}
	c := migrationCheck{m, &Mistakes{Workflow: to.Name}}
	c.all()
	if len(c.found.List) > 0 {
		return nil, c.found
	}
	return m, nil
}

// Into is the new state of an instance. known is false for a state from which instances are not migrated: one that the old version does not
// have, or a final one.
//
// Of composite states each state inside them is mapped, and what [Last] returns to. known is also false if their new states cannot be
// active together.
func (m *Migration) Into(old State) (now State, known bool) {
	if m.From.tree == nil && m.To.tree == nil {
		now, known = m.states[old]
		return now, known
	}
	return m.To.together(m.From.innermost(old), m.states)
}

// Carries reports whether an instance is taken while the activity is under way. Else it has to wait.
func (m *Migration) Carries(activity string) bool { return slices.Contains(m.plan.carried, activity) }

// Data makes the new data. Its error is an *Error, of which nothing but Internal is the plan's defect; it does not recover panics.
func (m *Migration) Data(old []byte) ([]byte, error) {
	data, err := m.plan.data(old, m.From.gone)
	if err != nil {
		return nil, planRefusal(err)
	}
	return data, nil
}

// Attributes are those of an instance after its migration, of which computed are the new version's: what
// neither version declares, some other build has.
func (m *Migration) Attributes(before, computed map[string]string) map[string]string {
	kept := maps.Clone(before)
	for _, name := range m.From.Attributes {
		delete(kept, name)
	}
	return m.To.KeptAttributes(kept, computed)
}

// TimerChange is what a migration makes of a timer.
type TimerChange struct {
	Name   string
	Disarm bool   // it ran, and does not run on as it was
	Arm    *Timer // it runs from now on, until Due; nil: it does not, or as it did
	Due    time.Time
}

// Timers are the timers of an instance that do not run on as they did. Errors are those of [Timer.Due].
func (m *Migration) Timers(old State, before, after []byte, now time.Time) (list []TimerChange, err error) {
	into := m.states[old]
	for _, t := range m.From.TimersIn(old) {
		if timerNamed(m.To.TimersIn(into), t.Name) == nil {
			list = append(list, TimerChange{Name: t.Name, Disarm: true})
		}
	}
	for _, t := range m.To.TimersIn(into) {
		change, err := m.timer(t, timerNamed(m.From.TimersIn(old), t.Name), before, after, now)
		if err != nil {
			return nil, err
		}
		if change != nil {
			list = append(list, *change)
		}
	}
	return list, nil
}

// timer is what becomes of a timer of the new version; nil: it runs on as it did. was is that of the old one, nil for none.
func (m *Migration) timer(t, was *Timer, before, after []byte, now time.Time) (*TimerChange, error) {
	rule := m.plan.timers[t.Name]
	if was != nil && (rule == keepTimer || rule == 0 && !t.FromData()) {
		return nil, nil
	}
	due, err := m.due(t, rule, was, after, now)
	if err != nil {
		return nil, err
	}
	if was != nil && rule == 0 {
		if ran, err := was.Due(now, before); err != nil || ran.Equal(due) {
			return nil, err
		}
	}
	return &TimerChange{Name: t.Name, Disarm: was != nil, Arm: t, Due: due}, nil
}

func (m *Migration) due(t *Timer, rule timerRule, was *Timer, data []byte, now time.Time) (time.Time, error) {
	if was != nil && rule == setTimer {
		return m.plan.at(t.Name, now, data)
	}
	return t.Due(now, data)
}

func timerNamed(timers []*Timer, name string) *Timer {
	for _, t := range timers {
		if t.Name == name {
			return t
		}
	}
	return nil
}

// migrationCheck looks for the mistakes of a plan.
type migrationCheck struct {
	*Migration
	found *Mistakes
}

func (c *migrationCheck) add(format string, args ...any) {
	text := fmt.Sprintf("the plan from version %d to version %d "+format, append([]any{c.From.Version, c.To.Version}, args...)...)
	if !slices.Contains(c.found.List, text) { // a timer may run in several states
		c.found.add("%s", text)
	}
}

func (c *migrationCheck) all() {
	for _, text := range c.plan.mistakes {
		c.add("%s", text)
	}
	c.checkData()
	c.checkStates()
	c.checkCarried()
	c.checkUndos()
	c.checkTimers()
	c.checkPast()
}

func (c *migrationCheck) checkData() {
	if c.plan.old != c.From.data {
		c.add("is for data %s; version %d has %s", c.plan.old, c.From.Version, c.From.data)
		return
	}
	if !c.plan.same {
		return
	}
	lacks, cannot := schemagen.Unlike(whole(c.From.members)[""], whole(c.To.members)[""])
	for _, path := range slices.Sorted(maps.Keys(lacks)) {
		if strings.HasPrefix(path, attributeMember) || c.To.means(path) {
			continue // attributes are computed anew
		}
		c.add("leaves the data as it is, and %q (%s) has no place in it", path, lacks[path])
	}
	for _, path := range slices.Sorted(maps.Keys(cannot)) {
		c.add("leaves the data as it is, and %q cannot be read any more (%s)", path, cannot[path])
	}
}

// checkStates finds where each state leads.
func (c *migrationCheck) checkStates() {
	for _, s := range slices.Sorted(maps.Keys(c.plan.states)) {
		switch {
		case !slices.Contains(c.From.States, s):
			c.add("maps state %q, which version %d does not have", s, c.From.Version)
		case c.From.final[s]:
			c.add("maps state %q, where instances of version %d end: they stay", s, c.From.Version)
		case c.From.underWay(s) != nil:
			c.add("maps state %q, where an activity is under way: say Carry for %q", s, c.From.underWay(s).Name)
		}
	}
	ends := c.To.ending()
	for _, s := range c.From.States {
		if c.From.final[s] || c.From.underWay(s) != nil || c.From.regions[s] != nil {
			continue
		}
		if into, ok := c.target(s); ok {
			if len(c.To.Finals) > 0 && !ends[into] {
				c.add("takes state %q to %q, from which no final state can be reached", s, into)
			}
			c.states[s] = into
		}
	}
}

// target is where an ordinary state leads; false: that is a mistake.
func (c *migrationCheck) target(s State) (State, bool) {
	into, said := c.plan.states[s]
	if !said {
		into = s
	}
	busy := c.To.underWay(into)
	switch has := slices.Contains(c.To.States, into); {
	case !said && !has:
		c.add("does not say where state %q leads: version %d has no such state", s, c.To.Version)
	case !said && (busy != nil || c.To.final[into]):
		c.add("does not say where state %q leads: in version %d it is another kind of state", s, c.To.Version)
	case !has:
		c.add("takes state %q to %q, which version %d does not have", s, into, c.To.Version)
	case busy != nil:
		c.add("takes state %q to %q, where an instance is only while %q is under way", s, into, busy.Name)
	default:
		return into, true
	}
	return "", false
}

// checkCarried checks the carried activities. The state during such an activity must become its state in the new version.
func (c *migrationCheck) checkCarried() {
	for i, name := range c.plan.carried {
		was, is := c.From.onlyActivity(name), c.To.onlyActivity(name)
		switch {
		case slices.Contains(c.plan.carried[:i], name):
			c.add("carries activity %q twice", name)
		case was == nil || is == nil:
			c.add("carries activity %q, which both versions must have, and once", name)
		case !sameWork(was, is):
			c.add("carries activity %q, whose payload or result is another one in version %d", name, c.To.Version)
		case is.keepsFrom():
			c.add("carries activity %q, which in version %d returns to its former state: that is a state of version %d",
				name, c.To.Version, c.From.Version)
		case c.states[was.Work.Via] != "" && c.states[was.Work.Via] != is.Work.Via:
			c.add("carries activity %q to state %q, and another one of state %q to %q", name, is.Work.Via, was.Work.Via, c.states[was.Work.Via])
		case len(c.To.Finals) > 0 && !c.To.ending()[is.Work.Via]:
			c.add("carries activity %q to state %q, from which no final state can be reached", name, is.Work.Via)
		default:
			c.states[was.Work.Via] = is.Work.Via
		}
	}
	for _, s := range c.From.States { // from which an instance is taken when its activity has ended
		if _, known := c.states[s]; !known && c.From.underWay(s) != nil {
			c.states[s] = ""
		}
	}
}

// checkUndos looks for effects that could not be undone any more.
func (c *migrationCheck) checkUndos() {
	for _, s := range c.From.Steps {
		if s.Work == nil || !s.Work.Undoable {
			continue
		}
		if is := c.To.onlyActivity(s.Name); is == nil || c.From.onlyActivity(s.Name) == nil || !is.Work.Undoable || !sameWork(s, is) {
			c.add("leaves effects of %q behind, which may have to be undone: "+
				"version %d needs it with an Undo, the same payload and result, both once",
				s.Name, c.To.Version)
		}
	}
}

// onlyActivity returns the activity of that name, or nil if there is not exactly one.
func (w *Workflow) onlyActivity(name string) *Step {
	if activities(w.byName[name]) != 1 {
		return nil
	}
	return w.Activity(name, "")
}

func sameWork(was, is *Step) bool {
	return schemagen.Meaning(was.body.payloadType()) == schemagen.Meaning(is.body.payloadType()) &&
		maps.Equal(was.Work.body.resultMembers(), is.Work.body.resultMembers())
}

func (c *migrationCheck) checkTimers() {
	used := map[string]bool{}
	for _, s := range c.From.States {
		into := c.states[s]
		if into == "" {
			continue
		}
		for _, was := range c.From.TimersIn(s) {
			used[was.Name] = true
			if is := timerNamed(c.To.TimersIn(into), was.Name); is == nil {
				c.checkLost(was, s, into)
			} else {
				c.checkKept(was, is)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.plan.timers)) {
		if !used[name] {
			c.add("says what becomes of timer %q, which does not run in version %d", name, c.From.Version)
		}
	}
}

func (c *migrationCheck) checkLost(was *Timer, s, into State) {
	if c.plan.timers[was.Name] != dropTimer {
		c.add("does not say what becomes of timer %q of state %q, which does not run in %q: say DropTimer", was.Name, s, into)
	}
}

func (c *migrationCheck) checkKept(was, is *Timer) {
	switch rule := c.plan.timers[was.Name]; {
	case rule == dropTimer:
		c.add("drops timer %q, which runs in version %d too: say KeepTimer, RestartTimer or SetTimer", was.Name, c.To.Version)
	case rule == keepTimer && was.Do != is.Do:
		c.add("keeps timer %q, which does %q now, and not %q: say RestartTimer or SetTimer", was.Name, is.Do, was.Do)
	case rule == 0 && (was.Do != is.Do || was.After != is.After || was.FromData() != is.FromData()):
		c.add("does not say what becomes of timer %q, which is another one in version %d: say KeepTimer, RestartTimer or SetTimer",
			was.Name, c.To.Version)
	}
}

// ending are the states from which a final one can be reached.
func (w *Workflow) ending() map[State]bool {
	ends := maps.Clone(w.final)
	for changed := true; changed; {
		changed = false
		for _, s := range w.Steps {
			leaves := s.From
			targets := s.To
			if s.Work != nil {
				leaves, targets = append(slices.Clone(s.From), s.Work.Via), s.reaches()[1:]
			}
			if !slices.ContainsFunc(targets, func(t State) bool { return ends[State(strings.TrimPrefix(string(t), lastPrefix))] }) {
				continue
			}
			for _, from := range leaves {
				changed, ends[from] = changed || !ends[from], true
			}
		}
		for _, s := range w.States {
			if !ends[s] && slices.ContainsFunc(w.within(s).Active(), func(around State) bool { return ends[around] }) {
				changed, ends[s] = true, true
			}
		}
	}
	return ends
}

// checkPlans looks at what of the plans can be told without the other version.
func (d *Definition[D]) checkPlans(m *Mistakes, w *Workflow) {
	for i, p := range d.plans {
		if p == nil {
			m.add("plan %d of the migrations is nil", i+1)
			continue
		}
		frozen := p.plan()
		switch {
		case frozen.from == d.version || frozen.from < 1:
			m.add("a plan is for instances of version %d, which is not another one", frozen.from)
		case w.plans[frozen.from] != nil:
			m.add("there are two plans for instances of version %d", frozen.from)
		}
		w.plans[frozen.from] = frozen
	}
}
