package workflow

import (
	"maps"
	"slices"
	"strings"

	"github.com/pawlhq/pawl/internal/chart"
)

// RegionSpec is a region as it is being declared; see [Region].
type RegionSpec struct {
	name   string
	states []State
	done   []State
}

// Region declares a part of a composite state that is active at the same time as its other regions; see [Definition.Regions]. It is entered in the
// first of its states. The name is unique among the regions of the workflow.
func Region(name string, states ...State) *RegionSpec {
	return &RegionSpec{name: name, states: states}
}

// Done declares the states in which the region has done its part, for [Definition.Joined].
func (r *RegionSpec) Done(states ...State) *RegionSpec {
	r.done = append(r.done, states...)
	return r
}

// composite is a state with states inside: regions, or one anonymous region.
type composite struct {
	parent  State
	regions []*RegionSpec // one without a name: the states are direct children
}

// Regions makes a state composite: while it is active, each region is in one of its states. A transition to the composite state enters
// all regions, each in its first state; a transition to a state of one region enters the other regions in their first states, if the
// composite state was not active. A transition that leaves the composite state leaves all regions, disarms their timers and cancels their
// activities. The states of a region may be composite themselves.
func (d *Definition[D]) Regions(parent State, regions ...*RegionSpec) *Definition[D] {
	d.composites = append(d.composites, composite{parent, slices.Clone(regions)})
	return d
}

// Inside makes a state composite: while it is active, exactly one of the given states is active inside it. A transition to the composite
// state enters the first of them.
func (d *Definition[D]) Inside(parent State, states ...State) *Definition[D] {
	d.composites = append(d.composites, composite{parent, []*RegionSpec{{states: states}}})
	return d
}

// Join says how many regions of a composite state have to be done; see [Definition.Joined].
type Join struct{ regions int }

var (
	All = Join{}           // every region
	Any = Join{regions: 1} // one region
)

// N is a number of regions.
func N(regions int) Join { return Join{regions} }

// Joined declares an automatic transition (see [Auto]) that leaves a composite state as soon as enough of its regions are done, whatever
// the others do: their timers are disarmed and their activities cancelled. It is named after the state: "checking_joined".
func (d *Definition[D]) Joined(composite State, need Join, to State, action func(c *Call, data *D) error) *Definition[D] {
	d.joins = append(d.joins, join[D]{composite, need, to, action})
	return d
}

type join[D any] struct {
	composite State
	need      Join
	to        State
	action    func(*Call, *D) error
}

// joinParts are the transitions of the joins. Mistakes go to m.
func (d *Definition[D]) joinParts(m *Mistakes) (parts []Part[D]) {
	for _, j := range d.joins {
		var regions []*RegionSpec
		for _, c := range d.composites {
			if c.parent == j.composite {
				regions = c.regions
			}
		}
		need, can := j.need.regions, 0
		if need == 0 {
			need = len(regions)
		}
		for _, r := range regions {
			if len(r.done) > 0 {
				can++
			}
		}
		if need < 1 || can < need {
			m.add("state %q cannot be joined: it has %d regions that can be done, and the join needs %d", j.composite, can, max(need, 1))
		}
		parts = append(parts, Auto(string(j.composite)+"_joined", From(j.composite), j.to, j.action).
			Guard("joined", func(c *Call, _ D) error {
				if done := doneRegions(regions, c.State()); done < need {
					return Refuse("%d of %d regions are done", done, need)
				}
				return nil
			}))
	}
	return parts
}

func doneRegions(regions []*RegionSpec, state State) (n int) {
	for _, r := range regions {
		if slices.ContainsFunc(r.done, state.Has) {
			n++
		}
	}
	return n
}

// Last as a target returns to the states that were active inside a composite state when it was left, however deep. Before that it is the
// composite state itself.
func Last(composite State) State { return lastPrefix + composite }

const lastPrefix = "last:"

// LastOf returns the composite state of a target that [Last] made.
func LastOf(target State) (composite State, ok bool) {
	name, ok := strings.CutPrefix(string(target), lastPrefix)
	return State(name), ok
}

// describe is the composite state for readers.
func (c composite) describe() (list []RegionDescription) {
	for _, r := range c.regions {
		list = append(list, RegionDescription{Name: r.name, States: r.states, Done: r.done})
	}
	return list
}

// stateTree is the chart of a workflow with composite states.
type stateTree struct {
	*chart.Chart
	nodes   map[State]int // of states and of histories
	regions map[string]int
	final   map[int]bool
	moves   map[move]int // the chart's transitions; without a step and a state to leave for a state that is entered by itself
}

// move is a transition of the chart: a step from one state that it may leave to one of its targets.
type move struct {
	step     *Step
	from, to State
}

// buildTree sets the chart of a definition with composite states. Mistakes go to m.
func (w *Workflow) buildTree(m *Mistakes, composites []composite) {
	if len(composites) == 0 {
		return
	}
	b := treeBuilder{w: w, m: m, inside: map[State]composite{}, above: map[State]State{}, nodes: map[State]int{}, regions: map[string]int{}}
	w.regions = map[State][]RegionDescription{}
	before := len(m.List)
	for _, c := range composites {
		b.declare(c)
		w.regions[c.parent] = c.describe()
	}
	if len(m.List) > before {
		return
	}
	b.states = []chart.State{{Parent: -1}}
	for _, s := range w.States {
		if _, inner := b.above[s]; !inner {
			if n := b.longest(s); n > maxState {
				m.add("the states inside %q have too long names together: %d bytes, and %d are allowed", s, n, maxState)
			}
			b.add(s, 0, false)
		}
	}
	b.connect()
}

// check looks at what a step does with composite states.
func (b *treeBuilder) check(s *Step) {
	for _, to := range s.reaches() {
		composite, isLast := strings.CutPrefix(string(to), lastPrefix)
		if !isLast {
			continue
		}
		if _, ok := b.inside[State(composite)]; !ok {
			b.m.add("transition %q returns to the last states inside %q, which has none inside", s.Name, composite)
		}
		for _, f := range s.From {
			if f == State(composite) || b.isInside(f, State(composite)) {
				b.m.add("transition %q returns to the last states inside %q from %q, where they are active", s.Name, composite, f)
			}
		}
	}
	if others := b.w.Moving(s.Name); (s.Work != nil || s.Hook != nil) && len(others) > 1 && slices.ContainsFunc(others, b.inRegion) {
		b.m.add("transition %q has an activity or a hook, so no other declaration of it can be executed at the same time: give it another name",
			s.Name)
	}
	if s.Work == nil {
		return
	}
	if above, inside := b.above[s.Work.Via]; inside || b.inside[s.Work.Via].regions != nil {
		b.m.add("activity %q is under way in state %q, which is inside %q or composite: an instance has one activity at a time",
			s.Name, s.Work.Via, above)
	}
}

// inRegion reports whether a step leaves a state beside which others are active.
func (b *treeBuilder) inRegion(s *Step) bool {
	return slices.ContainsFunc(s.From, func(f State) bool {
		for above, ok := b.above[f]; ok; above, ok = b.above[above] {
			if len(b.inside[above].regions) > 1 {
				return true
			}
		}
		return false
	})
}

// isInside reports whether a state is inside another, however deep.
func (b *treeBuilder) isInside(s, composite State) bool {
	for above, ok := b.above[s]; ok; above, ok = b.above[above] {
		if above == composite {
			return true
		}
	}
	return false
}

type treeBuilder struct {
	w       *Workflow
	m       *Mistakes
	inside  map[State]composite
	above   map[State]State
	states  []chart.State
	nodes   map[State]int
	regions map[string]int
}

func (b *treeBuilder) declare(c composite) {
	if _, twice := b.inside[c.parent]; twice {
		b.m.add("state %q is declared composite twice", c.parent)
		return
	}
	b.inside[c.parent] = c
	for _, r := range c.regions {
		switch {
		case len(r.states) == 0:
			b.m.add("region %q of state %q has no states", r.name, c.parent)
		case r.name != "" && !nameForm.MatchString(r.name):
			b.m.add("the region's name %q is not 1 to 64 of a-z, 0-9, _ and -", r.name)
		case r.name == "" && len(c.regions) > 1:
			b.m.add("a region of state %q has no name", c.parent)
		}
		if _, twice := b.regions[r.name]; twice && r.name != "" {
			b.m.add("region %q is declared twice", r.name)
		}
		b.regions[r.name] = 0
		for _, s := range r.states {
			if other, twice := b.above[s]; twice {
				b.m.add("state %q is inside %q and inside %q", s, other, c.parent)
			}
			b.above[s] = c.parent
			if !slices.Contains(b.w.States, s) {
				b.w.States = append(b.w.States, s)
			}
		}
		for _, s := range r.states {
			if b.w.final[s] {
				b.m.add("state %q is final, but it is inside %q: a region ends in states that are declared Done", s, c.parent)
			}
		}
		for _, s := range r.done {
			if !slices.Contains(r.states, s) {
				b.m.add("region %q is done in state %q, which is not one of its states", r.name, s)
			}
		}
	}
	for s := c.parent; ; {
		above, ok := b.above[s]
		if !ok {
			break
		}
		if s = above; s == c.parent {
			b.m.add("state %q is inside itself", s)
			delete(b.above, s)
		}
	}
	if !slices.Contains(b.w.States, c.parent) {
		b.w.States = append(b.w.States, c.parent)
	}
}

// maxState limits the text of a configuration, which is a column of an index.
const maxState = 1000

// longest is the length of the longest text of a state with what can be active inside it.
func (b *treeBuilder) longest(s State) int {
	n := len(s)
	for _, r := range b.inside[s].regions {
		most := 0
		for _, inner := range r.states {
			most = max(most, b.longest(inner))
		}
		n += 1 + most
	}
	if b.returnsTo(s) {
		n *= 2
	}
	return n + 1
}

// add appends a state and what is inside it, in document order.
func (b *treeBuilder) add(s State, parent int, done bool) {
	n := len(b.states)
	b.nodes[s] = n
	node := chart.State{Name: string(s), Parent: parent}
	c, isComposite := b.inside[s]
	switch {
	case !isComposite && done:
		node.Kind = chart.Final
	case isComposite && c.regions[0].name != "":
		node.Kind = chart.Parallel
	}
	b.states = append(b.states, node)
	for _, r := range c.regions {
		into := n
		if r.name != "" {
			into = len(b.states)
			b.regions[r.name] = into
			b.states = append(b.states, chart.State{Name: r.name, Parent: n})
		}
		for _, inner := range r.states {
			b.add(inner, into, slices.Contains(r.done, inner))
		}
	}
	if isComposite && b.returnsTo(s) {
		b.nodes[Last(s)] = len(b.states)
		b.states = append(b.states, chart.State{Name: string(Last(s)), Kind: chart.Deep, Parent: n, Initial: b.firsts(c)})
	}
}

// returnsTo reports whether some transition has the last states inside s as a target.
func (b *treeBuilder) returnsTo(s State) bool {
	return slices.ContainsFunc(b.w.Steps, func(step *Step) bool { return slices.Contains(step.reaches(), Last(s)) })
}

func (b *treeBuilder) firsts(c composite) (list []int) {
	for _, r := range c.regions {
		list = append(list, b.nodes[r.states[0]])
	}
	return list
}

// connect adds the transitions and checks the chart.
func (b *treeBuilder) connect() {
	t := &stateTree{nodes: b.nodes, regions: b.regions, final: map[int]bool{}, moves: map[move]int{}}
	for f := range b.w.final {
		t.final[b.nodes[f]] = true
	}
	var list []chart.Transition
	for _, s := range b.w.Steps {
		b.check(s)
		from := s.From
		if s.Start {
			from = []State{""}
		}
		if s.Work != nil {
			from = append(slices.Clone(from), s.Work.Via)
		}
		for _, f := range from {
			for _, to := range s.reaches() {
				t.moves[move{s, f, to}] = len(list)
				tr := chart.Transition{Source: b.nodes[f]} // of "" it is the root
				if to != Stay {
					tr.Targets = []int{b.nodes[to]}
				}
				list = append(list, tr)
			}
		}
	}
	for _, s := range slices.Sorted(maps.Keys(b.nodes)) {
		t.moves[move{to: s}] = len(list)
		list = append(list, chart.Transition{Targets: []int{b.nodes[s]}})
	}
	if len(b.m.List) > 0 {
		return
	}
	var err error
	if t.Chart, err = chart.New(b.states, list); err != nil {
		b.m.add("%v", err)
		return
	}
	b.w.tree = t
}
