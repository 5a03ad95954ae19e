package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Two builds of one version of a workflow: "case". The newer has a member more at every depth.

type olderCase struct {
	Title   string                `json:"title"`
	Lines   []olderLine           `json:"lines,omitempty"`
	Parties map[string]olderParty `json:"parties,omitempty"`
	Head    *olderHead            `json:"head,omitzero"`
}

type olderLine struct {
	Item  string `json:"item"`
	Count int    `json:"count"`
}

type olderParty struct {
	Name  string    `json:"name"`
	Place olderHead `json:"place,omitzero"`
}

type olderHead struct {
	Text string `json:"text"`
}

type newerCase struct {
	Title   string                `json:"title"`
	Lines   []newerLine           `json:"lines,omitempty"`
	Parties map[string]newerParty `json:"parties,omitempty"`
	Head    *newerHead            `json:"head,omitzero"`
	Risk    newerRisk             `json:"risk,omitzero"`
}

type newerLine struct {
	Item  string         `json:"item"`
	Count int            `json:"count"`
	Marks map[string]int `json:"marks,omitempty"`
}

type newerParty struct {
	Name  string    `json:"name"`
	Place newerHead `json:"place,omitzero"`
	Since int       `json:"since,omitzero"`
}

type newerHead struct {
	Text  string   `json:"text"`
	Signs []string `json:"signs,omitempty"`
}

type newerRisk struct {
	Grade int   `json:"grade,omitzero"`
	Past  []int `json:"past,omitempty"`
}

// shape is what both builds know of a case.
type shape[D, L, P, H any] struct {
	title   func(*D) *string
	lines   func(*D) *[]L
	line    func(item string, count int) L
	count   func(*L) *int
	parties func(*D) *map[string]P
	party   func(name string) P
	place   func(*P) *string
	head    func(*D) **H
	text    func(*H) *string
}

var olderShape = shape[olderCase, olderLine, olderParty, olderHead]{
	title:   func(d *olderCase) *string { return &d.Title },
	lines:   func(d *olderCase) *[]olderLine { return &d.Lines },
	line:    func(item string, count int) olderLine { return olderLine{item, count} },
	count:   func(l *olderLine) *int { return &l.Count },
	parties: func(d *olderCase) *map[string]olderParty { return &d.Parties },
	party:   func(name string) olderParty { return olderParty{Name: name} },
	place:   func(p *olderParty) *string { return &p.Place.Text },
	head:    func(d *olderCase) **olderHead { return &d.Head },
	text:    func(h *olderHead) *string { return &h.Text },
}

var newerShape = shape[newerCase, newerLine, newerParty, newerHead]{
	title:   func(d *newerCase) *string { return &d.Title },
	lines:   func(d *newerCase) *[]newerLine { return &d.Lines },
	line:    func(item string, count int) newerLine { return newerLine{Item: item, Count: count} },
	count:   func(l *newerLine) *int { return &l.Count },
	parties: func(d *newerCase) *map[string]newerParty { return &d.Parties },
	party:   func(name string) newerParty { return newerParty{Name: name} },
	place:   func(p *newerParty) *string { return &p.Place.Text },
	head:    func(d *newerCase) **newerHead { return &d.Head },
	text:    func(h *newerHead) *string { return &h.Text },
}

// change does at random one of the things that both builds do.
func (s *shape[D, L, P, H]) change(d *D, r *rand.Rand) {
	lines, parties, head := s.lines(d), s.parties(d), s.head(d)
	party := fmt.Sprint("party ", r.IntN(4))
	switch r.IntN(8) {
	case 0:
		*s.title(d) = fmt.Sprint("title ", r.IntN(1000))
	case 1:
		*lines = append(*lines, s.line(fmt.Sprint("item ", r.Uint32()), r.IntN(10)))
	case 2:
		if len(*lines) > 3 {
			i := r.IntN(len(*lines))
			*lines = append((*lines)[:i:i], (*lines)[i+1:]...)
		}
	case 3:
		if len(*lines) > 0 {
			*s.count(&(*lines)[r.IntN(len(*lines))])++
		}
	case 4:
		r.Shuffle(len(*lines), func(i, j int) { (*lines)[i], (*lines)[j] = (*lines)[j], (*lines)[i] })
	case 5:
		if *parties == nil {
			*parties = map[string]P{}
		}
		p, there := (*parties)[party]
		if !there {
			p = s.party(party)
		}
		*s.place(&p) = fmt.Sprint("place ", r.IntN(1000))
		(*parties)[party] = p
	case 6:
		if r.IntN(3) == 0 {
			delete(*parties, party)
		}
	case 7:
		if *head == nil {
			*head = new(H)
		}
		*s.text(*head) = fmt.Sprint("text ", r.IntN(1000))
	}
}

// enrich sets at random what the newer build alone knows.
func enrich(d *newerCase, r *rand.Rand) {
	d.Risk.Grade = 1 + r.IntN(9)
	d.Risk.Past = append(d.Risk.Past[max(0, len(d.Risk.Past)-3):], d.Risk.Grade)
	for i := range d.Lines {
		if r.IntN(2) == 0 {
			d.Lines[i].Marks = map[string]int{fmt.Sprint("mark ", r.IntN(3)): r.Int()}
		}
	}
	for name, p := range d.Parties {
		p.Since = 1 + len(name) + d.Risk.Grade
		p.Place.Signs = []string{fmt.Sprint(name, d.Risk.Grade)}
		d.Parties[name] = p
	}
	if d.Head != nil {
		d.Head.Signs = append(d.Head.Signs[max(0, len(d.Head.Signs)-3):], fmt.Sprint(r.IntN(1000)))
	}
}

type seeded struct {
	Seed uint64 `json:"seed"`
}

func (s seeded) random() *rand.Rand { return rand.New(rand.NewPCG(s.Seed, 14)) }

func cases[D any](change func(*D, seeded)) *workflow.Definition[D] {
	do := func(_ *workflow.Call, d *D, p seeded) error { change(d, p); return nil }
	return workflow.Define("case", 1, workflow.Start("open", "open", do), workflow.On("change", workflow.From("open"), workflow.Stay, do),
		workflow.On("close", workflow.From("open"), "closed", do)).Final("closed")
}

func changeOlder(d *olderCase, p seeded) { olderShape.change(d, p.random()) }

func changeNewer(d *newerCase, p seeded) {
	r := p.random()
	newerShape.change(d, r)
	enrich(d, r)
}

// twoBuilds are two nodes, one of each build, which swap places.
type twoBuilds struct {
	sync.RWMutex // nobody asks while they swap: who has done a command is to be known
	nodes        [2]*engine.Engine
	newer        int // its place
}

// do does a command on the node at a place, or, if that cannot keep what it does not know, on the newer. It reports
// whether the newer did it, and whether the other could not.
func (b *twoBuilds) do(ctx context.Context, place int, c transitions.Command) (r transitions.Receipt, newer, passed bool, err error) {
	b.RLock()
	defer b.RUnlock()
	r, err = b.nodes[place].Submit(ctx, c)
	if workflow.CodeOf(err) == workflow.NotOnThisNode && place != b.newer {
		place, passed = b.newer, true
		r, err = b.nodes[place].Submit(ctx, c)
	}
	if err == nil {
		err = r.Err()
	}
	return r, place == b.newer, passed, err
}

// swap has both end, and the other build begin in the place of each.
func (b *twoBuilds) swap(t *testing.T, begin func(newer bool) *engine.Engine) {
	b.Lock()
	defer b.Unlock()
	for _, e := range b.nodes {
		stop(t, e)
	}
	b.newer = 1 - b.newer
	b.nodes[b.newer], b.nodes[1-b.newer] = begin(true), begin(false)
}

// Both builds serve, are asked at random, and swap places; each case is as if the newer members had been
// left alone by who does not know them.
func TestTwoBuildsSideBySideLoseNoMember(t *testing.T) {
	t.Parallel()
	buildsSideBySide(t, 6, 40, 2)
}

func TestTwoBuildsSideBySideLoseNoMemberForAMinute(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	ends := time.Now().Add(time.Minute)
	for round := 0; time.Now().Before(ends); round++ {
		t.Run(fmt.Sprint(round), func(t *testing.T) { buildsSideBySide(t, 32, 200, 6) })
	}
}

// buildsSideBySide has so many callers, each with a case that it changes so often, while the nodes swap so often.
func buildsSideBySide(t *testing.T, callers, changes, swaps int) {
	t.Helper()
	pool := database(t)
	begin := func(newer bool) *engine.Engine {
		return start(t, pool, func(c *engine.Config) {
			if c.Workflows = []workflow.Source{cases(changeOlder)}; newer {
				c.Workflows = []workflow.Source{cases(changeNewer)}
			}
		})
	}
	older := begin(false) // it begins first, as the build of before
	b := &twoBuilds{nodes: [2]*engine.Engine{begin(true), older}}
	ctx := underLoad(t)
	done := make(chan struct{}, callers*changes)
	var work sync.WaitGroup
	for caller := range callers {
		work.Go(func() { b.changeOne(ctx, t, uint64(caller), changes, done) })
	}
	for swap := range swaps {
		for range callers * changes / (swaps + 1) {
			select {
			case <-done:
			case <-ctx.Done():
				t.Fatalf("not in time: swap %d", swap)
			}
		}
		b.swap(t, begin)
	}
	work.Wait()
}

// changeOne begins a case and changes it, and itself keeps what it should be.
func (b *twoBuilds) changeOne(ctx context.Context, t *testing.T, caller uint64, changes int, done chan<- struct{}) {
	r := rand.New(rand.NewPCG(caller, 5))
	var want newerCase
	var passed, counted int
	defer func() {
		for ; counted < changes; counted++ {
			done <- struct{}{}
		}
	}()
	c := transitions.Command{Workflow: "case", Transition: "open"}
	for i := range changes {
		p := seeded{r.Uint64N(1 << 53)} // what JSON's numbers hold
		c.Key, c.Payload = fmt.Sprintf("%d %d", caller, i), fmt.Appendf(nil, `{"seed":%d}`, p.Seed)
		receipt, newer, other, err := b.do(ctx, r.IntN(2), c)
		if err != nil {
			t.Errorf("caller %d, change %d: %v", caller, i, err)
			break
		}
		if newer {
			changeNewer(&want, p)
		} else {
			newerShape.change(&want, p.random())
		}
		if other {
			passed++
		}
		c.Transition, c.Instance = "change", receipt.Instance
		done <- struct{}{}
		counted++
	}
	b.RLock()
	inst, err := b.nodes[b.newer].Read().Instance(ctx, "", c.Instance)
	b.RUnlock()
	if err != nil {
		t.Error(err)
		return
	}
	var got newerCase
	assert.NoError(t, json.Unmarshal(inst.Data, &got, json.RejectUnknownMembers(true)))
	if g, w := encoded(got), encoded(want); g != w {
		t.Errorf("caller %d, of whose changes the older build has passed on %d:\ngot  %s\nwant %s", caller, passed, g, w)
	}
}

func encoded(c newerCase) string {
	text, err := json.Marshal(c, json.Deterministic(true))
	if err != nil {
		return err.Error()
	}
	return string(text)
}
