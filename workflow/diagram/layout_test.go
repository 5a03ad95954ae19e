package diagram

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/workflow"
)

// randomWorkflow has states and steps without a plan; it need not make sense.
func randomWorkflow(r *rand.Rand) *workflow.Workflow {
	w := &workflow.Workflow{Name: "random", Version: 1}
	for i := range 1 + r.IntN(12) {
		w.States = append(w.States, workflow.State(fmt.Sprintf("state-%d%0*d", i, r.IntN(12), 0)))
	}
	state := func() workflow.State { return w.States[r.IntN(len(w.States))] }
	for i := range 1 + r.IntN(25) {
		s := &workflow.Step{Name: fmt.Sprintf("step-%d%0*d", i, r.IntN(20), 0), Start: i == 0 || r.IntN(8) == 0}
		if !s.Start {
			for range 1 + r.IntN(3) {
				s.From = append(s.From, state())
			}
		}
		s.To = append(s.To, state())
		if !s.Start && r.IntN(5) == 0 {
			s.To = append(s.To, workflow.Stay)
		}
		if !s.Start && !slices.Contains(s.To, workflow.Stay) && r.IntN(4) == 0 {
			s.Work = &workflow.Work{Via: state(), Failed: state()}
		}
		if r.IntN(3) == 0 {
			s.Roles = []string{"clerk"}
		}
		w.Steps = append(w.Steps, s)
		if r.IntN(4) == 0 {
			w.Timers = append(w.Timers, &workflow.Timer{Name: s.Name, In: s.From, After: time.Duration(r.Int64N(1e15)), Do: s.Name})
		}
	}
	return w
}

// Nothing stands on anything else: the nodes of a rank keep their distance, the
// ranks follow each other, and every link goes from rank to rank, through a
// place of its own in each, past its label.
func TestLayout_NoOverlap(t *testing.T) {
	for seed := range uint64(40) {
		w := randomWorkflow(rand.New(rand.NewPCG(seed, 1)))
		for _, direction := range []Direction{TopDown, LeftRight} {
			d := newDrawing(pictureOf(w), Options{Direction: direction})
			for r, rank := range d.layout.ranks {
				for i, n := range rank {
					require.Truef(t, n.rank == r && n.index == i, "seed %d: a node is not where it thinks", seed)
					assert.Truef(t, !(n.at-n.before < -1e-6), "seed %d: a node begins at %g", seed, n.at-n.before)
					if i > 0 {
						apart := n.at - rank[i-1].at
						assert.GreaterOrEqualf(t, apart, distance(rank[i-1], n)-1e-6, "seed %d: two nodes of rank %d are %g apart", seed, r, apart)
					}
					assert.Truef(t, !(n.along > d.thick[r]+1e-6), "seed %d: a node is higher than its rank", seed)
				}
				assert.Falsef(t, r > 0 && d.middle[r]-d.thick[r]/2 < d.middle[r-1]+d.thick[r-1]/2+17,
					"seed %d: ranks %d and %d touch", seed, r-1, r)
			}
			for _, k := range d.layout.links {
				assert.Containsf(t, k.chain, k.label, "seed %d: a label is not on its link", seed)
				for i, n := range k.chain[1:] {
					assert.Equalf(t, k.chain[i].rank+1, n.rank, "seed %d: a link jumps", seed)
				}
				upper, lower := k.ends()
				assert.Truef(t, k.chain[0] == upper && k.chain[len(k.chain)-1] == lower, "seed %d: a link has other ends", seed)
				shared := len(lower.up) + len(upper.down)
				assert.Truef(t, shared >= 2, "seed %d: a link is not connected", seed)
			}
		}
	}
}

// area is a rectangle that no line may enter.
type area struct{ left, top, right, bottom float64 }

func (a area) holds(x, y float64) bool {
	return a.left+1 < x && x < a.right-1 && a.top+1 < y && y < a.bottom-1
}

func (d *drawing) area(across, along, acrossSize, alongSize float64) area {
	x, y := d.point(across+margin, along)
	w, h := d.point(acrossSize, alongSize)
	return area{x - w/2, y - h/2, x + w/2, y + h/2}
}

// No line runs through a state or a label: the drawn paths are followed, point
// by point.
func TestNoLineCrossesAStateOrALabel(t *testing.T) {
	for seed := range uint64(40) {
		w := randomWorkflow(rand.New(rand.NewPCG(seed, 2)))
		for _, direction := range []Direction{TopDown, LeftRight} {
			d := newDrawing(pictureOf(w), Options{Direction: direction})
			d.write()
			var areas []area
			for _, s := range w.States {
				n, b := d.states[s], d.boxes[s]
				x, y := d.point(n.at+margin, d.middle[n.rank])
				areas = append(areas, area{x - b.wide/2, y - b.tall/2, x + b.wide/2, y + b.tall/2})
			}
			for _, k := range d.layout.links {
				areas = append(areas, d.area(k.label.at, d.middle[k.label.rank], k.label.before+k.label.after, k.label.along))
			}
			for _, path := range drawnPaths(d.out.String()) {
				follow(path, func(x, y float64) {
					for _, a := range areas {
						assert.Falsef(t, a.holds(x, y),
							"seed %d, direction %d: a line is at %.0f,%.0f inside of %.0f", seed, direction, x, y, a)
					}
				})
			}
		}
	}
}

var (
	linePath = regexp.MustCompile(`<path(?: class="pawl-lines"[^>]*)? d="([^"]*)"/>`)
	command  = regexp.MustCompile(`([MLC])([^MLC]*)`)
)

func drawnPaths(svg string) []string {
	var paths []string
	for _, m := range linePath.FindAllStringSubmatch(svg, -1) {
		paths = append(paths, m[1])
	}
	return paths
}

// follow visits points of a path of M, L and C.
func follow(path string, visit func(x, y float64)) {
	var x, y float64
	for _, m := range command.FindAllStringSubmatch(path, -1) {
		p := numbers(m[2])
		if m[1] == "M" {
			x, y = p[0], p[1]
			continue
		}
		if m[1] == "L" { // a curve whose handles lie on its ends
			p = []float64{x, y, p[0], p[1], p[0], p[1]}
		}
		for i := range 21 {
			t := float64(i) / 20
			u := 1 - t
			visit(u*u*u*x+3*u*u*t*p[0]+3*u*t*t*p[2]+t*t*t*p[4], u*u*u*y+3*u*u*t*p[1]+3*u*t*t*p[3]+t*t*t*p[5])
		}
		x, y = p[4], p[5]
	}
}

func numbers(text string) []float64 {
	var all []float64
	for _, f := range strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' }) {
		n, err := strconv.ParseFloat(f, 64)
		if err != nil {
			panic(err)
		}
		all = append(all, n)
	}
	return all
}
