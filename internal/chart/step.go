package chart

import (
	"maps"
	"slices"
)

// Step is the result of taking transitions at the same time: a microstep.
type Step struct {
	Config  Config
	Exited  []int // deepest first, the last in document order before the first
	Entered []int // in document order, so outermost first
	Done    []int // states that are done: of a simple state a final child was entered, of a parallel one every child is done
}

// Start enters the root by its default.
func (c *Chart) Start() Step {
	e := entry{c: c, enter: map[int]bool{}}
	e.descend(0)
	return e.step(Config{}, nil)
}

// Enter makes a configuration of states that are active together. Other regions and inner states are active by default.
func (c *Chart) Enter(states []int) (Config, error) {
	if err := c.checkTogether(states); err != nil {
		return Config{}, err
	}
	e := entry{c: c, enter: map[int]bool{0: true}}
	for _, s := range states {
		e.descend(s)
	}
	for _, s := range states {
		e.ascend(s, 0)
	}
	return e.step(Config{}, nil).Config, nil
}

// Select chooses among the enabled transitions those that are taken: for each atomic state the first that is enabled at it, else at its
// nearest ancestor that has an enabled one. Where two of them leave the same state, the one from the deeper source is taken, else the
// first.
func (c *Chart) Select(config Config, enabled func(transition int) bool) (taken []int) {
	for _, s := range c.Atomic(config) {
		for at := s; at >= 0; at = c.states[at].Parent {
			i := slices.IndexFunc(c.leaving[at], enabled)
			if i < 0 {
				continue
			}
			if t := c.leaving[at][i]; !slices.Contains(taken, t) {
				taken = c.compete(config, taken, t)
			}
			break
		}
	}
	return taken
}

// compete adds a transition unless it conflicts with one that has priority, and drops those over which it has priority itself.
func (c *Chart) compete(config Config, taken []int, t int) []int {
	exits := c.exits(config, t)
	var kept []int
	for _, other := range taken {
		if !intersect(exits, c.exits(config, other)) {
			kept = append(kept, other)
			continue
		}
		if !c.isWithin(c.transitions[t].Source, c.transitions[other].Source) {
			return taken
		}
	}
	return append(kept, t)
}

func intersect(a, b []int) bool {
	return slices.ContainsFunc(a, func(s int) bool { return slices.Contains(b, s) })
}

// Take leaves and enters the states of transitions that [Chart.Select] has chosen.
func (c *Chart) Take(config Config, taken []int) Step {
	left := map[int]bool{}
	e := entry{c: c, enter: map[int]bool{}, history: config.History}
	for _, t := range taken {
		for _, s := range c.exits(config, t) {
			left[s] = true
		}
	}
	exited := slices.Sorted(maps.Keys(left))
	// Histories are recorded before states are entered, so that a transition out of a state and into its history restores it.
	for _, s := range exited {
		for _, h := range c.histories[s] {
			if e.history = maps.Clone(e.history); e.history == nil {
				e.history = map[int][]int{}
			}
			e.history[h] = c.record(config, s, c.states[h].Kind)
		}
	}
	for _, t := range taken {
		if len(c.transitions[t].Targets) == 0 {
			continue
		}
		for _, s := range c.transitions[t].Targets {
			e.descend(s)
		}
		domain := c.domain(t, config.History)
		for _, s := range c.effective(c.transitions[t].Targets, e.history) {
			e.ascend(s, domain)
		}
	}
	slices.Reverse(exited)
	return e.step(config, exited)
}

func (c *Chart) record(config Config, parent int, kind Kind) (list []int) {
	for _, s := range config.Active {
		if kind == Shallow && c.states[s].Parent == parent || kind == Deep && c.IsAtomic(s) && c.isWithin(s, parent) {
			list = append(list, s)
		}
	}
	return list
}

// exits lists the active states that a transition leaves.
func (c *Chart) exits(config Config, t int) (list []int) {
	if len(c.transitions[t].Targets) == 0 {
		return nil
	}
	domain := c.domain(t, config.History)
	for _, s := range config.Active {
		if c.isWithin(s, domain) {
			list = append(list, s)
		}
	}
	return list
}

// domain is the state that remains active while the transition is taken: the innermost compound state that contains source and targets.
func (c *Chart) domain(t int, history map[int][]int) int {
	source, targets := c.transitions[t].Source, c.effective(c.transitions[t].Targets, history)
	contains := func(s int) bool {
		return !slices.ContainsFunc(targets, func(target int) bool { return !c.isWithin(target, s) })
	}
	if c.transitions[t].Internal && c.isCompound(source) && contains(source) {
		return source
	}
	for s := c.states[source].Parent; s > 0; s = c.states[s].Parent {
		if c.isCompound(s) && contains(s) {
			return s
		}
	}
	return 0
}

// effective replaces histories by what they have recorded, or by their defaults.
func (c *Chart) effective(targets []int, history map[int][]int) (list []int) {
	for _, s := range targets {
		if recorded, ok := history[s]; ok {
			list = append(list, recorded...)
		} else if c.isHistory(s) {
			list = append(list, c.effective(c.states[s].Initial, history)...)
		} else {
			list = append(list, s)
		}
	}
	return list
}

// entry collects the states that a step enters.
type entry struct {
	c       *Chart
	enter   map[int]bool
	history map[int][]int
}

// descend enters a state with all that is active within it by default.
func (e *entry) descend(s int) {
	if e.c.isHistory(s) {
		targets := e.c.effective([]int{s}, e.history)
		for _, target := range targets {
			e.descend(target)
		}
		for _, target := range targets {
			e.ascend(target, e.c.states[s].Parent)
		}
		return
	}
	e.enter[s] = true
	children := e.c.children[s]
	switch {
	case len(children) == 0:
	case e.c.states[s].Kind == Parallel:
		e.descendOthers(s)
	default:
		initial := e.c.states[s].Initial
		if len(initial) == 0 {
			initial = children[:1]
		}
		for _, child := range initial {
			e.descend(child)
		}
		for _, child := range e.c.effective(initial, e.history) {
			e.ascend(child, s)
		}
	}
}

// ascend enters the states between a state and an ancestor of it that is active, and the other children of parallel states among them.
func (e *entry) ascend(s, ancestor int) {
	for s = e.c.states[s].Parent; s > ancestor; s = e.c.states[s].Parent {
		e.enter[s] = true
		if e.c.states[s].Kind == Parallel {
			e.descendOthers(s)
		}
	}
}

// descendOthers enters the children of a parallel state in which nothing is entered yet.
func (e *entry) descendOthers(parallel int) {
	for _, child := range e.c.children[parallel] {
		entered := false
		for s := range e.enter {
			entered = entered || s == child || e.c.isWithin(s, child)
		}
		if !entered {
			e.descend(child)
		}
	}
}

func (e *entry) step(before Config, exited []int) Step {
	entered := slices.Sorted(maps.Keys(e.enter))
	active := slices.Clone(entered)
	for _, s := range before.Active {
		if !slices.Contains(exited, s) && !e.enter[s] {
			active = append(active, s)
		}
	}
	slices.Sort(active)
	out := Step{Config: Config{Active: active, History: e.history}, Exited: exited, Entered: entered}
	for _, s := range entered {
		if e.c.states[s].Kind != Final {
			continue
		}
		parent := e.c.states[s].Parent
		out.Done = append(out.Done, parent)
		if above := e.c.states[parent].Parent; above >= 0 && e.c.states[above].Kind == Parallel && e.c.IsDone(out.Config, above) {
			out.Done = append(out.Done, above)
		}
	}
	return out
}

// IsDone reports whether a state is done: a final child of a simple state is active, or every child of a parallel one is done.
func (c *Chart) IsDone(config Config, s int) bool {
	final := func(child int) bool { return c.states[child].Kind == Final && config.IsActive(child) }
	switch {
	case c.states[s].Kind == Parallel:
		return !slices.ContainsFunc(c.children[s], func(child int) bool { return !c.IsDone(config, child) })
	default:
		return slices.ContainsFunc(c.children[s], final)
	}
}
