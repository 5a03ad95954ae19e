package chart

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// randomChart is a chart with transitions on the events e0 to e3.
type randomChart struct {
	states      []State
	transitions []Transition
	events      []string
}

func newRandomChart(r *rand.Rand) *randomChart {
	for {
		c := &randomChart{}
		c.grow(r, -1, 0)
		if len(c.states) < 3 {
			continue
		}
		var real []int
		for n, s := range c.states {
			if s.Kind != Shallow && s.Kind != Deep {
				real = append(real, n)
			}
		}
		plain, err := New(c.states, nil)
		if err != nil {
			panic(err)
		}
		for range len(c.states) * 2 {
			t := Transition{Source: real[1+r.IntN(len(real)-1)], Internal: r.IntN(4) == 0}
			for range 1 + r.IntN(3) {
				target := 1 + r.IntN(len(c.states)-1)
				if plain.checkTogether(append(slices.Clone(t.Targets), target)) == nil {
					t.Targets = append(t.Targets, target)
				}
			}
			if plain.deviates(t) {
				continue
			}
			c.transitions = append(c.transitions, t)
		}
		// In document order.
		slices.SortStableFunc(c.transitions, func(a, b Transition) int { return a.Source - b.Source })
		for range c.transitions {
			c.events = append(c.events, fmt.Sprintf("e%d", r.IntN(4)))
		}
		return c
	}
}

// deviates reports whether scion-core does not follow SCXML with a transition: it does not leave a parallel state for a transition from
// one of its regions into another, and a transition to a history leaves the history's parent whatever is restored.
func (c *Chart) deviates(t Transition) bool {
	if slices.ContainsFunc(t.Targets, func(n int) bool { return c.isHistory(n) && c.isWithin(t.Source, c.states[n].Parent) }) {
		return true
	}
	for s := c.states[t.Source].Parent; s >= 0; s = c.states[s].Parent {
		if !slices.ContainsFunc(t.Targets, func(target int) bool { return !c.isWithin(target, s) }) {
			return c.states[s].Kind == Parallel
		}
	}
	return false
}

func (c *randomChart) grow(r *rand.Rand, parent, depth int) {
	n := len(c.states)
	c.states = append(c.states, State{Name: fmt.Sprintf("s%d", n), Parent: parent})
	if depth > 4 || parent >= 0 && r.IntN(5) < depth-1 {
		return
	}
	if parent >= 0 && r.IntN(3) == 0 {
		c.states[n].Kind = Parallel
	}
	history := -1
	var children []int
	for range 2 + r.IntN(2) {
		children = append(children, len(c.states))
		c.grow(r, n, depth+1)
		// Not before the first child, which scion-core takes for the default.
		if parent >= 0 && history < 0 && r.IntN(3) == 0 {
			history = len(c.states)
			c.states = append(c.states, State{Name: fmt.Sprintf("s%d", history), Kind: []Kind{Shallow, Deep}[r.IntN(2)], Parent: n})
		}
	}
	if history >= 0 {
		c.states[history].Initial = []int{children[r.IntN(len(children))]}
	}
	if c.states[n].Kind == Simple && r.IntN(3) == 0 {
		c.states[n].Initial = []int{children[r.IntN(len(children))]}
	}
}

// model is the chart as scion-core takes it.
func (c *randomChart) model() map[string]any {
	nodes := make([]map[string]any, len(c.states))
	names := func(list []int) (out []string) {
		for _, n := range list {
			out = append(out, c.states[n].Name)
		}
		return out
	}
	for n, s := range c.states {
		nodes[n] = map[string]any{"id": s.Name}
		switch s.Kind {
		case Parallel:
			nodes[n]["$type"] = "parallel"
		case Shallow, Deep:
			nodes[n]["$type"], nodes[n]["isDeep"] = "history", s.Kind == Deep
			nodes[n]["transitions"] = []any{map[string]any{"target": names(s.Initial)}}
		default:
			if len(s.Initial) > 0 {
				nodes[n]["initial"] = names(s.Initial)
			}
		}
	}
	for i, t := range c.transitions {
		m := map[string]any{"event": c.events[i], "target": names(t.Targets)}
		if t.Internal {
			m["type"] = "internal"
		}
		list, _ := nodes[t.Source]["transitions"].([]any)
		nodes[t.Source]["transitions"] = append(list, m)
	}
	for n := len(c.states) - 1; n > 0; n-- {
		p := nodes[c.states[n].Parent]
		list, _ := p["states"].([]any)
		p["states"] = append([]any{nodes[n]}, list...)
	}
	return nodes[0]
}

// TestRandomCharts compares with an independent interpreter, scion-core. The charts have no final states, which its deep histories
// forget; the SCXML tests have them.
func TestRandomCharts(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("there is no Node.js to run scion-core")
	}
	dir := npmInstall(t, "scion-core@2.6.0")
	charts, events := 10_000, 100
	if testing.Short() {
		charts = 100
	}
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	var in bytes.Buffer
	var want []string
	var lines []string
	for range charts {
		c := newRandomChart(r)
		list := make([]string, events)
		for i := range list {
			list[i] = fmt.Sprintf("e%d", r.IntN(4))
		}
		line, err := json.Marshal(map[string]any{"model": c.model(), "events": list})
		require.NoError(t, err)
		in.Write(append(line, '\n'))
		lines = append(lines, string(line))
		want = append(want, c.run(t, list))
	}
	cmd := exec.CommandContext(t.Context(), "node", "testdata/scion.js", dir)
	cmd.Stdin = &in
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	reader := bufio.NewReaderSize(out, 1<<20)
	for n := range charts {
		line, err := reader.ReadString('\n')
		require.NoError(t, err)
		if line != want[n]+"\n" {
			_, _ = io.Copy(io.Discard, reader)
			t.Errorf("seed %d, chart %d: %s\nscion-core: %sours:       %s", seed, n, lines[n], line, want[n])
			break
		}
	}
	require.NoError(t, cmd.Wait())
}

func (c *randomChart) run(t *testing.T, events []string) string {
	chart, err := New(c.states, c.transitions)
	require.NoError(t, err)
	step := chart.Start()
	all := [][]string{}
	add := func() {
		names := []string{}
		for _, s := range chart.Atomic(step.Config) {
			names = append(names, chart.Name(s))
		}
		slices.Sort(names)
		all = append(all, names)
	}
	add()
	for _, e := range events {
		taken := chart.Select(step.Config, func(n int) bool { return c.events[n] == e })
		step = chart.Take(step.Config, taken)
		chart.requireValid(t, step.Config)
		add()
	}
	out, err := json.Marshal(all)
	require.NoError(t, err)
	return string(out)
}

// requireValid fails unless the active states are a configuration: one child of each simple state, and all of each parallel one.
func (c *Chart) requireValid(t *testing.T, config Config) {
	t.Helper()
	for _, s := range config.Active {
		n := 0
		for _, child := range c.children[s] {
			if config.IsActive(child) {
				n++
			}
		}
		want := min(1, len(c.children[s]))
		if c.states[s].Kind == Parallel {
			want = len(c.children[s])
		}
		require.Equal(t, want, n, "active children of %s in %v", c.Name(s), config.Active)
		require.True(t, s == 0 || config.IsActive(c.states[s].Parent), "the parent of %s is not active", c.Name(s))
	}
}
