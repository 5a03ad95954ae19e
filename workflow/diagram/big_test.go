package diagram

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/workflow"
)

// tangle is a workflow with three transitions from each state, two of them to any other.
func tangle(states int) *workflow.Workflow {
	r := rand.New(rand.NewPCG(1, uint64(states)))
	w := &workflow.Workflow{Name: "tangle", Version: 1}
	for i := range states {
		w.States = append(w.States, workflow.State(fmt.Sprintf("state-%d", i)))
	}
	w.Steps = append(w.Steps, &workflow.Step{Name: "start", Start: true, To: w.States[:1]})
	for i, s := range w.States {
		for j, to := range []int{(i + 1) % states, r.IntN(states), r.IntN(states)} {
			w.Steps = append(w.Steps, &workflow.Step{Name: fmt.Sprintf("step-%d-%d", i, j), From: []workflow.State{s}, To: w.States[to : to+1]})
		}
	}
	return w
}

func TestSVG_LargeWorkflowIsAList(t *testing.T) {
	t.Parallel()
	assert.NotNil(t, newDrawing(pictureOf(tangle(100)), Options{}).layout, "a workflow of 100 states has no layout")
	sizes := map[int]int{}
	for _, states := range []int{300, 1000, 3000} {
		w := tangle(states)
		p := pictureOf(w)
		require.Nilf(t, newDrawing(p, Options{}).layout, "a tangle of %d states is laid out", states)
		out, err := SVG(w, Options{Current: "state-7"})
		require.NoError(t, err)
		for d := xml.NewDecoder(bytes.NewReader(out)); err == nil; {
			_, err = d.Token()
		}
		require.ErrorIs(t, err, io.EOF)
		text := string(out)
		assert.Equal(t, states, strings.Count(text, "data-state="), "the list of states has")
		assert.Equal(t, len(p.arrows), strings.Count(text, "data-from="), "the list of arrows has")
		assert.Equal(t, 1, strings.Count(text, `"pawl-state pawl-current"`), "states are marked")
		assert.Contains(t, text, "step-1-0 → state-2", "a transition does not say where it leads")
		sizes[states] = len(out)
	}
	assert.Truef(t, sizes[1000] <= 1_500_000 && sizes[3000] <= 4*sizes[1000], "the lists have %v bytes by their states", sizes)
}

// Two ranks with thousands of nodes have few pieces, and very many pairs of them.
func TestLayout_OrderIsBounded(t *testing.T) {
	t.Parallel()
	w := &workflow.Workflow{Name: "wide", Version: 1, States: []workflow.State{"a", "b"}}
	w.Steps = append(w.Steps, &workflow.Step{Name: "start", Start: true, To: w.States})
	for i := range 1200 {
		s := workflow.State(fmt.Sprintf("state-%d", i))
		w.States = append(w.States, s)
		w.Steps = append(w.Steps, &workflow.Step{Name: fmt.Sprintf("step-%d", i), From: []workflow.State{"a", "b"}, To: []workflow.State{s}})
	}
	small := newDrawing(pictureOf(tangle(100)), Options{}).layout
	assert.Equal(t, sweeps, small.affordable(), "100 states have sweeps")
	wide := newDrawing(pictureOf(w), Options{}).layout
	n := wide.affordable()
	assert.Truef(t, n < sweeps, "ranks of 2,400 labels have %d sweeps", n)
}

func TestDraw_MarksAsSVG(t *testing.T) {
	t.Parallel()
	for _, w := range []*workflow.Workflow{fine(t), tangle(300)} {
		drawn := Draw(w, TopDown)
		plain, err := drawn.SVG("")
		if err != nil || bytes.Contains(plain, []byte(`pawl-state pawl-current"`)) || bytes.Contains(plain, []byte("the instance is in")) {
			t.Errorf("a state is marked, %v", err)
		}
		for _, s := range w.States[:2] {
			marked, err := drawn.SVG(s)
			want := `<g class="pawl-state pawl-current" data-state="` + string(s) + `">`
			if err != nil || !bytes.Contains(marked, []byte(want)) || !bytes.Contains(marked, []byte("; the instance is in "+string(s)+".</desc>")) {
				t.Errorf("%s is not marked, %v", s, err)
			}
		}
		assert.Truef(t, drawn.Size() >= len(plain), "the size is %d, the text has %d bytes", drawn.Size(), len(plain))
	}
}
