package diagram

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/pawlhq/pawl/workflow"
)

const (
	margin    = 12.0
	stateHigh = 36.0
	stateWide = 72.0 // at least
	dot       = 6.0  // the radius of the start
	tip       = 8.0  // the length of an arrowhead
	loop      = 24.0 // how far an arrow from a state to itself reaches out
	clear     = 3.0  // between a label and its arrow
	portGap   = 12.0 // between two arrows at a state, at least
	sideRoom  = 16.0 // around a name, and beside the arrows
)

// SVG draws the workflow as a picture that stands alone: no scripts, nothing
// loaded, colours for light and dark pages, a title and a description for those
// who do not see it. States carry data-state, arrows data-from and data-to.
//
// A workflow that is too large for a picture is drawn as a list of its states,
// each with the transitions that leave it. Time and size are linear then.
//
// It fails when the current state is not one of the workflow's.
func SVG(w *workflow.Workflow, o Options) ([]byte, error) {
	return Draw(w, o.Direction).SVG(o.Current)
}

// drawing is a picture whose parts have places.
type drawing struct {
	*picture
	options Options
	layout  *layout                  // nil for a workflow that is too large for one
	states  map[workflow.State]*node // the start is the state ""
	boxes   map[workflow.State]box
	arrowOf map[*link]*arrow
	loops   map[workflow.State]*arrow
	ports   map[port]float64
	middle  []float64 // of each rank, along
	thick   []float64 // of each rank, along
	out     bytes.Buffer
	marks   []mark // of what depends on the current state, in the order of out
}

func newDrawing(p *picture, o Options) *drawing {
	d := &drawing{
		picture: p, options: o, states: map[workflow.State]*node{}, boxes: map[workflow.State]box{}, arrowOf: map[*link]*arrow{},
		loops: map[workflow.State]*arrow{}, ports: map[port]float64{},
	}
	for _, a := range p.arrows {
		if a.from == a.to {
			d.loops[a.from] = a
		}
	}
	if len(p.arrows)*len(p.workflow.States) > maxPairs {
		return d
	}
	start := &node{before: dot, after: dot, along: 2 * dot}
	nodes := []*node{start}
	d.states[""] = start
	for _, s := range p.workflow.States {
		d.boxes[s] = d.boxOf(s)
		n := d.stateNode(s)
		d.states[s] = n
		nodes = append(nodes, n)
	}
	var links []*link
	for _, a := range p.arrows {
		if a.from == a.to {
			continue
		}
		k := &link{from: d.states[a.from], to: d.states[a.to], label: d.labelNode(a.captions())}
		d.arrowOf[k] = a
		links = append(links, k)
	}
	if d.layout = arrange(nodes, links); d.layout == nil {
		return d
	}
	d.spread()
	d.assignPorts()
	return d
}

func (d *drawing) sideways() bool { return d.options.Direction == LeftRight }

func (d *drawing) stateNode(s workflow.State) *node {
	b := d.boxes[s]
	var lines []string
	if a := d.loops[s]; a != nil {
		lines = a.captions()
	}
	n := &node{}
	if d.sideways() {
		n.before, n.after, n.along = b.tall/2, b.tall/2, b.wide
		if lines != nil {
			n.after += loop + clear + high(lines)
			n.along = max(n.along, widest(lines, textSize))
		}
		return n
	}
	n.before, n.after, n.along = b.wide/2, b.wide/2, b.tall
	if lines != nil {
		n.after += loop + clear + widest(lines, textSize)
		n.along = max(n.along, high(lines))
	}
	return n
}

// box is the size of a state.
type box struct{ wide, tall float64 }

// boxOf gives a state room for its name, and for the arrows at its busier side.
func (d *drawing) boxOf(s workflow.State) box {
	in, out := 0, 0
	for _, a := range d.arrows {
		switch {
		case a.from == a.to:
		case a.from == s:
			out++
		case a.to == s:
			in++
		}
	}
	arrows := float64(max(in, out)-1) * portGap
	b := box{max(stateWide, textWidth(string(s), nameSize)+2*sideRoom), stateHigh}
	if d.sideways() {
		b.tall = max(b.tall, arrows+sideRoom)
	} else {
		b.wide = max(b.wide, arrows+2*sideRoom)
	}
	return b
}

// side is the length of the state's side that arrows meet.
func (d *drawing) side(s workflow.State) float64 {
	switch {
	case s == "":
		return dot
	case d.sideways():
		return d.boxes[s].tall - sideRoom
	default:
		return d.boxes[s].wide - 2*sideRoom
	}
}

func (d *drawing) labelNode(lines []string) *node {
	wide, tall := widest(lines, textSize), high(lines)
	if d.sideways() {
		return &node{before: tall / 2, after: tall / 2, along: wide + 2*clear}
	}
	return &node{before: wide / 2, after: wide / 2, along: tall + 2*clear}
}

// spread puts the ranks one after the other, further apart where links have a
// long way across to go.
func (d *drawing) spread() {
	along := margin
	for i, rank := range d.layout.ranks {
		thick, across := 0.0, 0.0
		for _, n := range rank {
			thick = max(thick, n.along)
			for _, m := range n.down {
				across = max(across, math.Abs(n.at-m.at))
			}
		}
		d.thick = append(d.thick, thick)
		d.middle = append(d.middle, along+thick/2)
		along += thick
		if i < len(d.layout.ranks)-1 {
			along += 18 + min(24, across/9)
		}
	}
}

// port is where a link meets a state: on its upper or its lower side.
type port struct {
	link  *link
	lower bool
}

// assignPorts spreads the links along the sides of the states, in the order of
// the nodes that they lead to.
func (d *drawing) assignPorts() {
	for _, s := range append([]workflow.State{""}, d.workflow.States...) {
		n := d.states[s]
		for _, lower := range []bool{false, true} {
			var ends []port
			for _, k := range d.layout.links {
				if upper, below := k.ends(); lower && upper == n || !lower && below == n {
					ends = append(ends, port{k, lower})
				}
			}
			slices.SortStableFunc(ends, func(a, b port) int { return a.next().index - b.next().index })
			gap := min(18, d.side(s)/max(1, float64(len(ends)-1)))
			for i, e := range ends {
				d.ports[e] = n.at + (float64(i)-float64(len(ends)-1)/2)*gap
			}
			d.straightenPorts(ends, n.at-d.side(s)/2, n.at+d.side(s)/2)
		}
	}
}

// straightenPorts moves each port to where its link goes straight on, if that
// is on the state's side and leaves the others room.
func (d *drawing) straightenPorts(ends []port, low, high float64) {
	for i, e := range ends {
		least, most := low, high
		if i > 0 {
			least = d.ports[ends[i-1]] + portGap
		}
		if i < len(ends)-1 {
			most = d.ports[ends[i+1]] - portGap
		}
		if at := e.next().at; least <= at && at <= most {
			d.ports[e] = at
		}
	}
}

// next is the node that the link leads to from the port.
func (p port) next() *node {
	if p.lower {
		return p.link.chain[1]
	}
	return p.link.chain[len(p.link.chain)-2]
}

func (d *drawing) size() (wide, tall float64) {
	across := 0.0
	for _, rank := range d.layout.ranks {
		for _, n := range rank {
			across = max(across, n.at+n.after)
		}
	}
	last := len(d.middle) - 1
	return d.point(across+2*margin, d.middle[last]+d.thick[last]/2+margin)
}

// point turns across and along into x and y.
func (d *drawing) point(across, along float64) (x, y float64) {
	if d.sideways() {
		return along, across
	}
	return across, along
}

// xy writes a place inside the margin as SVG does.
func (d *drawing) xy(across, along float64) string {
	x, y := d.point(across+margin, along)
	return number1(x) + "," + number1(y)
}

// number1 writes a length with a tenth of a pixel.
func number1(f float64) string {
	return strconv.FormatFloat(math.Round(f*10)/10, 'f', -1, 64)
}

func (d *drawing) printf(format string, args ...any) { fmt.Fprintf(&d.out, format, args...) }

// escape writes a text for XML; what XML cannot hold becomes U+FFFD.
func escape(text string) string {
	var b bytes.Buffer
	if err := xml.EscapeText(&b, []byte(text)); err != nil {
		return "" // a buffer takes everything
	}
	return b.String()
}
