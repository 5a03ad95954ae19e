// Package chart computes which states of a statechart are left and entered. It implements the algorithm of SCXML
// (https://www.w3.org/TR/scxml/#AlgorithmforSCXMLInterpretation) over a tree of states, and nothing else: actions, data and events
// belong to its caller.
//
// States and transitions are numbered in document order. A [Chart] is immutable, and a [Config] is a value, so that a step can be
// computed again.
package chart

import (
	"fmt"
	"slices"
)

// Kind says what happens when a state is entered.
type Kind uint8

// The kinds of states.
const (
	Simple   Kind = iota // one child at a time, or none where it has no children
	Parallel             // all children at a time
	Final                // its parent is done
	Shallow              // history: the children of its parent that were active last
	Deep                 // history: the innermost states of its parent that were active last
)

// State is a node of the tree.
type State struct {
	Name    string
	Kind    Kind
	Parent  int   // -1 for the root, which is state 0 and [Simple]
	Initial []int // descendants that are entered by default; for a history, its default. Empty: the first child
}

// Transition leads from a source to targets.
type Transition struct {
	Source   int
	Targets  []int // empty: no state is left or entered
	Internal bool  // the source is not left if all targets are within it
}

// Chart is a checked tree of states with its transitions.
type Chart struct {
	states      []State
	transitions []Transition
	children    [][]int // without histories
	histories   [][]int
	leaving     [][]int // transitions by source
}

// New checks the states and transitions: parents stand before their children, only simple and parallel states have children, defaults
// are descendants, a history has a default, and the targets of one transition can be active together.
func New(states []State, transitions []Transition) (*Chart, error) {
	n := len(states)
	c := &Chart{states: states, transitions: transitions, children: make([][]int, n), histories: make([][]int, n), leaving: make([][]int, n)}
	if n == 0 || states[0].Parent != -1 || states[0].Kind != Simple {
		return nil, fmt.Errorf("chart: the first state is the root, which has no parent")
	}
	for i, s := range states[1:] {
		i++
		if s.Parent < 0 || s.Parent >= i {
			return nil, fmt.Errorf("chart: the parent of state %q does not stand before it", s.Name)
		}
		if k := states[s.Parent].Kind; k != Simple && k != Parallel {
			return nil, fmt.Errorf("chart: state %q is within %q, which cannot have states", s.Name, states[s.Parent].Name)
		}
		if c.isHistory(i) {
			c.histories[s.Parent] = append(c.histories[s.Parent], i)
		} else {
			c.children[s.Parent] = append(c.children[s.Parent], i)
		}
	}
	for i, s := range states {
		if err := c.checkInitial(i, s); err != nil {
			return nil, err
		}
	}
	for i, t := range transitions {
		if t.Source < 0 || t.Source >= n || c.isHistory(t.Source) {
			return nil, fmt.Errorf("chart: transition %d has no source", i)
		}
		if err := c.checkTogether(t.Targets); err != nil {
			return nil, fmt.Errorf("chart: transition %d from %q: %w", i, states[t.Source].Name, err)
		}
		c.leaving[t.Source] = append(c.leaving[t.Source], i)
	}
	return c, nil
}

func (c *Chart) checkInitial(i int, s State) error {
	within := i
	if c.isHistory(i) {
		if len(s.Initial) == 0 {
			return fmt.Errorf("chart: history %q has no default", s.Name)
		}
		within = s.Parent
	}
	for _, d := range s.Initial {
		if d < 0 || d >= len(c.states) || !c.isWithin(d, within) || c.isHistory(i) && c.isHistory(d) {
			return fmt.Errorf("chart: the default of state %q is not within it", s.Name)
		}
	}
	if err := c.checkTogether(s.Initial); err != nil {
		return fmt.Errorf("chart: the default of state %q: %w", s.Name, err)
	}
	return nil
}

// checkTogether refuses targets that exclude each other, and those of which one contains the other: entering that one by its default
// could exclude the other. A history stands for its parent.
func (c *Chart) checkTogether(list []int) error {
	for i, a := range list {
		if a < 1 || a >= len(c.states) {
			return fmt.Errorf("a target does not exist")
		}
		for _, b := range list[:i] {
			x, y := c.restored(a), c.restored(b)
			common := c.states[x].Parent
			for common > 0 && !c.isWithin(y, common) {
				common = c.states[common].Parent
			}
			if x == y || c.isWithin(x, y) || c.isWithin(y, x) || c.states[max(common, 0)].Kind != Parallel {
				return fmt.Errorf("%q and %q cannot be active together", c.states[b].Name, c.states[a].Name)
			}
		}
	}
	return nil
}

func (c *Chart) restored(s int) int {
	if c.isHistory(s) {
		return c.states[s].Parent
	}
	return s
}

// Name returns the name of a state.
func (c *Chart) Name(state int) string { return c.states[state].Name }

// Parent returns the state that a state is in, -1 for the root.
func (c *Chart) Parent(state int) int { return c.states[state].Parent }

// Leaving lists the transitions with a source, in document order.
func (c *Chart) Leaving(source int) []int { return c.leaving[source] }

// IsAtomic reports whether a state has no states within it.
func (c *Chart) IsAtomic(state int) bool { return len(c.children[state]) == 0 && !c.isHistory(state) }

func (c *Chart) isHistory(s int) bool {
	return c.states[s].Kind == Shallow || c.states[s].Kind == Deep
}

func (c *Chart) isCompound(s int) bool { return c.states[s].Kind == Simple && len(c.children[s]) > 0 }

// isWithin reports whether a state is a proper descendant of another.
func (c *Chart) isWithin(s, ancestor int) bool {
	for s > ancestor {
		if s = c.states[s].Parent; s == ancestor {
			return true
		}
	}
	return false
}

// Config is the set of active states, and what the histories have recorded.
type Config struct {
	Active  []int         // all active states, the root and other ancestors included, in document order
	History map[int][]int // by history; nil: nothing is recorded
}

// IsActive reports whether a state is active.
func (c Config) IsActive(state int) bool {
	_, found := slices.BinarySearch(c.Active, state)
	return found
}

// Atomic lists the active states without active states within them, in document order.
func (c *Chart) Atomic(config Config) (list []int) {
	for _, s := range config.Active {
		if c.IsAtomic(s) {
			list = append(list, s)
		}
	}
	return list
}
