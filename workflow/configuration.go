package workflow

import (
	"maps"
	"slices"
	"strings"

	"github.com/pawlhq/pawl/internal/chart"
)

// configuration reads the text of a configuration; "" is that of a creation.
func (t *stateTree) configuration(state State) chart.Config {
	names, rest, _ := strings.Cut(string(state), ";")
	config := chart.Config{Active: []int{0}}
	for name := range State(names).active() {
		for n, ok := t.nodes[name]; ok && !config.IsActive(n); n = t.Parent(n) {
			at, _ := slices.BinarySearch(config.Active, n)
			config.Active = slices.Insert(config.Active, at, n)
		}
	}
	for part := range strings.SplitSeq(rest, ";") {
		if composite, last, ok := strings.Cut(part, "="); ok {
			if config.History == nil {
				config.History = map[int][]int{}
			}
			h := t.nodes[Last(State(composite))]
			for name := range strings.SplitSeq(last, ",") {
				config.History[h] = append(config.History[h], t.nodes[State(name)])
			}
		}
	}
	return config
}

// text writes a configuration.
func (t *stateTree) text(config chart.Config) State {
	var b strings.Builder
	t.write(&b, config, t.activeIn(config, 0))
	for _, h := range slices.Sorted(maps.Keys(config.History)) {
		// It is recorded anew when the composite state is left, and nothing leaves a final state.
		if config.IsActive(t.Parent(h)) || t.final[t.activeIn(config, 0)[0]] {
			continue
		}
		b.WriteString(";" + strings.TrimPrefix(t.Name(h), lastPrefix) + "=")
		for i, n := range config.History[h] {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(t.Name(n))
		}
	}
	return State(b.String())
}

func (t *stateTree) write(b *strings.Builder, config chart.Config, list []int) {
	for i, n := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(t.Name(n))
		if inside := t.activeIn(config, n); len(inside) > 0 {
			b.WriteByte('(')
			t.write(b, config, inside)
			b.WriteByte(')')
		}
	}
}

// activeIn lists the active states directly inside a node, regions replaced by the state that each is in.
func (t *stateTree) activeIn(config chart.Config, parent int) (list []int) {
	for _, n := range config.Active {
		if n == 0 || t.Parent(n) != parent {
			continue
		}
		if t.isRegion(n) {
			list = append(list, t.activeIn(config, n)...)
		} else {
			list = append(list, n)
		}
	}
	return list
}

func (t *stateTree) isRegion(n int) bool { return t.regions[t.Name(n)] == n && n > 0 }

// Move is a step that an instance takes from one of the states that it leaves to one of its targets.
type Move struct {
	Step *Step
	From State // "" for a start
	To   State // as the action chose it; Stay or the state of the instance leave the configuration as it is
}

// Take returns the state of an instance after moves that happen at the same time.
func (w *Workflow) Take(state State, moves ...Move) State {
	moves = slices.DeleteFunc(slices.Clone(moves), func(m Move) bool { return m.To == Stay || m.To == state })
	switch {
	case len(moves) == 0:
		return state
	case w.tree == nil:
		return moves[0].To
	}
	var taken []int
	for _, m := range moves {
		taken = append(taken, w.tree.moves[move{m.Step, m.From, m.To}])
	}
	return w.tree.text(w.tree.Take(w.tree.configuration(state), taken).Config)
}

// named lists the states among nodes.
func (t *stateTree) named(nodes []int) (list []State) {
	for _, n := range nodes {
		if n > 0 && !t.isRegion(n) {
			list = append(list, State(t.Name(n)))
		}
	}
	return list
}

// Select returns the moves of a command: the steps of the name that leave an active state, at most one for each region. enabled
// reports whether the guards of a step permit it; a step that they do not permit gives way to one of a composite state around it. The
// target of a move is the first of its step, which its action may change.
func (w *Workflow) Select(state State, transition string, enabled func(*Step) bool) []Move {
	return w.selected(state, w.AllLeaving(transition, state), enabled)
}

// SelectAuto returns the moves of automatic transitions, as [Workflow.Select] does.
func (w *Workflow) SelectAuto(state State, enabled func(*Step) bool) []Move {
	if !w.automatic {
		return nil
	}
	var steps []*Step
	for _, s := range w.Steps {
		if s.Auto && slices.ContainsFunc(s.From, state.Has) {
			steps = append(steps, s)
		}
	}
	return w.selected(state, steps, enabled)
}

func (w *Workflow) selected(state State, steps []*Step, enabled func(*Step) bool) []Move {
	candidates := map[int]Move{}
	for _, s := range steps {
		switch {
		case !enabled(s):
		case w.tree == nil:
			return []Move{{Step: s, From: state, To: s.first()}}
		default:
			for _, f := range s.From {
				m := Move{Step: s, From: f, To: s.first()}
				candidates[w.tree.moves[move{s, f, m.To}]] = m
			}
		}
	}
	if len(candidates) == 0 {
		return nil
	}
	var list []Move
	for _, n := range w.tree.Select(w.tree.configuration(state), func(n int) bool { _, ok := candidates[n]; return ok }) {
		list = append(list, candidates[n])
	}
	return list
}

// parts are the innermost states of a configuration, and by composite state those that [Last] returns to.
type parts struct {
	active []State
	last   map[State][]State
}

// innermost takes the state of an instance apart.
func (w *Workflow) innermost(state State) parts {
	if w.tree == nil {
		return parts{active: []State{state}}
	}
	config := w.tree.configuration(state)
	p := parts{active: w.tree.named(w.tree.Atomic(config)), last: map[State][]State{}}
	for h, list := range config.History {
		p.last[State(strings.TrimPrefix(w.tree.Name(h), lastPrefix))] = w.tree.named(list)
	}
	return p
}

// together is the state of an instance that is made of other states, each mapped; false if one is not mapped, or if they exclude each
// other. What Last returned to is kept for composite states that still have a transition to it.
func (w *Workflow) together(p parts, mapped map[State]State) (State, bool) {
	active, ok := through(p.active, mapped)
	if !ok {
		return "", false
	}
	if w.tree == nil {
		return active[0], len(active) == 1
	}
	config, err := w.tree.Enter(w.tree.numbers(active))
	if err != nil {
		return "", false
	}
	for composite, list := range p.last {
		last, ok := through(list, mapped)
		if !ok {
			return "", false
		}
		if h, is := w.tree.nodes[Last(composite)]; is {
			if config.History == nil {
				config.History = map[int][]int{}
			}
			config.History[h] = w.tree.numbers(last)
		}
	}
	return w.tree.text(config), true
}

// through maps states and drops repeated ones.
func through(list []State, mapped map[State]State) (out []State, ok bool) {
	for _, s := range list {
		to, known := mapped[s]
		if !known {
			return nil, false
		}
		if !slices.Contains(out, to) {
			out = append(out, to)
		}
	}
	return out, len(out) > 0
}

func (t *stateTree) numbers(list []State) (nodes []int) {
	for _, s := range list {
		nodes = append(nodes, t.nodes[s])
	}
	return nodes
}

// first is the target of the step unless its action says otherwise.
func (s *Step) first() State { return s.accepted()[0] }

// IsPlain reports whether a step alone determines the state of an instance after it: no state is composite, and nothing is automatic.
func (w *Workflow) IsPlain() bool { return w.tree == nil && !w.automatic }
