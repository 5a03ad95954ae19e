package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Two builds of one version of the workflow "case". The newer build has one more member at each depth.
// The property tests of workflow/internal/unknown cover all types.

type olderCase struct {
	Title string      `json:"title"`
	Lines []olderLine `json:"lines,omitempty"`
}

type olderLine struct {
	Item  string `json:"item"`
	Count int    `json:"count"`
}

type newerCase struct {
	Title string      `json:"title"`
	Lines []newerLine `json:"lines,omitempty"`
	Risk  int         `json:"risk,omitzero"`
}

type newerLine struct {
	Item  string         `json:"item"`
	Count int            `json:"count"`
	Marks map[string]int `json:"marks,omitempty"`
}

type seeded struct {
	Seed uint64 `json:"seed"`
}

func (s seeded) random() *rand.Rand { return rand.New(rand.NewPCG(s.Seed, 14)) }

func changeOlder(d *olderCase, p seeded) {
	r := p.random()
	switch r.IntN(3) {
	case 0:
		d.Title = fmt.Sprint("title ", r.IntN(1000))
	case 1:
		d.Lines = append(d.Lines, olderLine{fmt.Sprint("item ", r.Uint32()), r.IntN(10)})
	default:
		if len(d.Lines) > 0 {
			d.Lines[r.IntN(len(d.Lines))].Count++
		}
	}
}

// changeShared changes the members that both builds have, as changeOlder does.
func changeShared(d *newerCase, p seeded) {
	older := olderCase{Title: d.Title}
	for _, l := range d.Lines {
		older.Lines = append(older.Lines, olderLine{l.Item, l.Count})
	}
	changeOlder(&older, p)
	d.Title = older.Title
	for i, l := range older.Lines {
		if i == len(d.Lines) {
			d.Lines = append(d.Lines, newerLine{})
		}
		d.Lines[i].Item, d.Lines[i].Count = l.Item, l.Count
	}
}

func changeNewer(d *newerCase, p seeded) {
	changeShared(d, p)
	r := p.random()
	d.Risk = 1 + r.IntN(9)
	for i := range d.Lines {
		if r.IntN(2) == 0 {
			d.Lines[i].Marks = map[string]int{fmt.Sprint("mark ", r.IntN(3)): r.Int()}
		}
	}
}

func cases[D any](change func(*D, seeded)) *workflow.Definition[D] {
	do := func(_ *workflow.Call, d *D, p seeded) error { change(d, p); return nil }
	return workflow.Define("case", 1, workflow.Start("open", "open", do), workflow.On("change", workflow.From("open"), workflow.Stay, do),
		workflow.On("close", workflow.From("open"), "closed", do)).Final("closed")
}

// twoBuilds are two nodes, one of each build, which are exchanged.
type twoBuilds struct {
	sync.RWMutex // excludes commands during an exchange, so that the build that executed a command is known
	nodes        [2]*engine.Engine
	newer        int // the index of the newer build
}

// submit submits a command to a node, or to the newer build if the node cannot keep unknown members.
// It reports whether the newer build executed it.
func (b *twoBuilds) submit(ctx context.Context, node int, c transitions.Command) (r transitions.Receipt, newer bool, err error) {
	b.RLock()
	defer b.RUnlock()
	r, err = b.nodes[node].Submit(ctx, c)
	if workflow.CodeOf(err) == workflow.NotOnThisNode && node != b.newer {
		node = b.newer
		r, err = b.nodes[node].Submit(ctx, c)
	}
	if err == nil {
		err = r.Err()
	}
	return r, node == b.newer, err
}

// Both builds serve random callers and change places. The older build keeps the members that it does not know.
func TestTwoBuildsKeepUnknownMembers(t *testing.T) {
	t.Parallel()
	const callers, changes, exchanges = 6, 40, 2
	pool := database(t)
	startBuild := func(w workflow.Source) *engine.Engine {
		return start(t, pool, func(c *engine.Config) { c.Workflows = []workflow.Source{w} })
	}
	older := startBuild(cases(changeOlder)) // first, as in an upgrade
	b := &twoBuilds{nodes: [2]*engine.Engine{startBuild(cases(changeNewer)), older}}
	ctx := underLoad(t)
	done := make(chan struct{}, callers*changes)
	var work sync.WaitGroup
	for caller := range callers {
		work.Go(func() { b.changeCase(ctx, t, uint64(caller), changes, done) })
	}
	for range exchanges {
		for range callers * changes / (exchanges + 1) {
			select {
			case <-done:
			case <-ctx.Done():
				require.FailNow(t, "not in time")
			}
		}
		b.Lock()
		for _, e := range b.nodes {
			stop(t, e)
		}
		b.newer = 1 - b.newer
		b.nodes[b.newer], b.nodes[1-b.newer] = startBuild(cases(changeNewer)), startBuild(cases(changeOlder))
		b.Unlock()
	}
	work.Wait()
}

// changeCase opens and changes a case, and compares it with its own copy.
func (b *twoBuilds) changeCase(ctx context.Context, t *testing.T, caller uint64, changes int, done chan<- struct{}) {
	r := rand.New(rand.NewPCG(caller, 5))
	var want, got newerCase
	c := transitions.Command{Workflow: "case", Transition: "open"}
	for i := range changes {
		p := seeded{r.Uint64N(1 << 53)} // exact as a JSON number
		c.Key, c.Payload = fmt.Sprintf("%d %d", caller, i), fmt.Appendf(nil, `{"seed":%d}`, p.Seed)
		receipt, newer, err := b.submit(ctx, r.IntN(2), c)
		if !assert.NoErrorf(t, err, "caller %d, change %d", caller, i) {
			return
		}
		if newer {
			changeNewer(&want, p)
		} else {
			changeShared(&want, p)
		}
		c.Transition, c.Instance = "change", receipt.Instance
		done <- struct{}{}
	}
	b.RLock()
	defer b.RUnlock()
	inst, err := b.nodes[b.newer].Read().Instance(ctx, "", c.Instance)
	if assert.NoError(t, err) && assert.NoError(t, json.Unmarshal(inst.Data, &got, json.RejectUnknownMembers(true))) {
		assert.Equalf(t, want, got, "caller %d", caller)
	}
}
