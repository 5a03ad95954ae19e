package diagram

import (
	"bytes"

	"github.com/pawlhq/pawl/workflow"
)

// The colours are attributes, so that they hold where a page forbids styles;
// the styles adapt them to the page.
const (
	font    = `ui-sans-serif,system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif`
	palette = `<style>` +
		`@media (prefers-color-scheme:light){.pawl-text{fill:#475569}}` +
		`@media (prefers-color-scheme:dark){.pawl-text{fill:#cbd5e1}.pawl-lines{stroke:#94a3b8}.pawl-tips{fill:#94a3b8}` +
		`.pawl-box{fill:#1e293b;stroke:#94a3b8}.pawl-name{fill:#f1f5f9}` +
		`.pawl-current .pawl-box{fill:#78350f;stroke:#fbbf24}.pawl-current .pawl-name{fill:#fef3c7}}` +
		`</style>`
)

func (d *drawing) write() {
	if d.layout == nil {
		d.list()
		return
	}
	d.head(d.size())
	for _, k := range d.layout.links {
		d.link(k)
	}
	d.start()
	for _, s := range d.workflow.States {
		if a := d.loops[s]; a != nil {
			d.loop(s, a)
		}
		n := d.states[s]
		x, y := d.point(n.at+margin, d.middle[n.rank])
		d.state(s, x, y, d.boxes[s])
	}
	d.printf("</svg>\n")
}

func (d *drawing) head(wide, tall float64) {
	d.printf(`<svg xmlns="http://www.w3.org/2000/svg" role="img" width="%s" height="%s" viewBox="0 0 %[1]s %[2]s" font-family="%s">`+"\n",
		number1(wide), number1(tall), font)
	d.printf("<title>%s</title>\n<desc>%s", escape(d.title()), escape(d.description()))
	d.marks = append(d.marks, mark{at: d.out.Len()})
	d.printf("</desc>\n%s\n", palette)
}

func (d *drawing) start() {
	x, y := d.point(d.states[""].at+margin, d.middle[0])
	d.printf(`<circle class="pawl-tips" cx="%s" cy="%s" r="%s" fill="#64748b"/>`+"\n", number1(x), number1(y), number1(dot))
}

// state draws a state around a place, in both of its looks.
func (d *drawing) state(s workflow.State, x, y float64, b box) {
	at := d.out.Len()
	d.box(s, x, y, b, true)
	marked := bytes.Clone(d.out.Bytes()[at:])
	d.out.Truncate(at)
	d.box(s, x, y, b, false)
	d.marks = append(d.marks, mark{s, at, d.out.Len() - at, marked})
}

func (d *drawing) box(s workflow.State, x, y float64, b box, current bool) {
	class, fill, stroke, ink, line := "pawl-state", "#f8fafc", "#64748b", "#0f172a", "1.4"
	if current {
		class, fill, stroke, ink, line = "pawl-state pawl-current", "#fde68a", "#b45309", "#451a03", "2.2"
	}
	d.printf(`<g class="%s" data-state="%s">`, class, escape(string(s)))
	border := func(inset float64) {
		d.printf(`<rect class="pawl-box" x="%s" y="%s" width="%s" height="%s" rx="%s" fill="%s" stroke="%s" stroke-width="%s"/>`,
			number1(x-b.wide/2+inset), number1(y-b.tall/2+inset), number1(b.wide-2*inset), number1(b.tall-2*inset),
			number1(9-inset/2), fill, stroke, line)
	}
	border(0)
	if d.workflow.IsFinal(s) {
		border(3.5)
	}
	d.printf(`<text class="pawl-name" x="%s" y="%s" text-anchor="middle" font-size="%s" font-weight="600" fill="%s">%s</text></g>`+"\n",
		number1(x), number1(y+nameSize*0.35), number1(nameSize), ink, escape(string(s)))
}

// link draws an arrow from state to state. It runs straight through the ranks,
// past the nodes there, and bends between them; its label interrupts it.
func (d *drawing) link(k *link) {
	a := d.arrowOf[k]
	d.open(a)
	last := len(k.chain) - 1
	at, along := d.ports[port{k, true}], d.edge(k.chain[0], +1)
	if k.back {
		d.tip(at, along, -1)
		along += tip
	}
	d.printf(`<g class="pawl-lines" fill="none" stroke="#64748b" stroke-width="1.4"%s><path d="M%s`, a.dashes(), d.xy(at, along))
	// A rank may be thicker than the state: the line leaves it straight, too.
	first := k.chain[0]
	along = max(along, d.middle[first.rank]+d.thick[first.rank]/2)
	d.printf("L%s", d.xy(at, along))
	for _, n := range k.chain[1:last] {
		top, bottom := d.middle[n.rank]-d.thick[n.rank]/2, d.middle[n.rank]+d.thick[n.rank]/2
		d.bend(at, along, n.at, top)
		if n == k.label {
			d.printf(`L%s"/><path d="M%s`, d.xy(n.at, d.middle[n.rank]-n.along/2), d.xy(n.at, d.middle[n.rank]+n.along/2))
		}
		d.printf("L%s", d.xy(n.at, bottom))
		at, along = n.at, bottom
	}
	end := d.ports[port{k, false}]
	below := d.edge(k.chain[last], -1)
	if !k.back {
		below -= tip
	}
	top := min(below, d.middle[k.chain[last].rank]-d.thick[k.chain[last].rank]/2)
	d.bend(at, along, end, top)
	d.printf(`L%s"/></g>`, d.xy(end, below))
	if !k.back {
		d.tip(end, below+tip, +1)
	}
	x, y := d.point(k.label.at+margin, d.middle[k.label.rank])
	d.text(a.captions(), x, y, "middle")
	d.printf("</g>\n")
}

// edge is where a state ends, along the diagram, below (+1) or above (-1).
func (d *drawing) edge(n *node, side float64) float64 {
	half := dot
	for _, s := range d.workflow.States {
		switch {
		case d.states[s] != n:
		case d.sideways():
			half = d.boxes[s].wide / 2
		default:
			half = d.boxes[s].tall / 2
		}
	}
	return d.middle[n.rank] + side*half
}

// bend draws a curve that begins and ends in the diagram's direction.
func (d *drawing) bend(at, along, at2, along2 float64) {
	half := (along + along2) / 2
	d.printf("C%s %s %s", d.xy(at, half), d.xy(at2, half), d.xy(at2, along2))
}

// tip draws an arrowhead that points down (+1) or up (-1) to the place.
func (d *drawing) tip(at, along, way float64) {
	d.printf(`<path class="pawl-tips" fill="#64748b" d="M%sL%sL%sZ"/>`,
		d.xy(at, along), d.xy(at-4, along-way*tip), d.xy(at+4, along-way*tip))
}

// loop draws an arrow from a state to itself: to its right, or below it when the
// diagram goes sideways.
func (d *drawing) loop(s workflow.State, a *arrow) {
	n := d.states[s]
	half := d.boxes[s].wide / 2
	if d.sideways() {
		half = d.boxes[s].tall / 2
	}
	out, middle := n.at+half, d.middle[n.rank]
	d.open(a)
	d.printf(`<path class="pawl-lines" fill="none" stroke="#64748b" stroke-width="1.4" d="M%sC%s %s %s"/>`,
		d.xy(out, middle-9), d.xy(out+loop*1.2, middle-18), d.xy(out+loop*1.2, middle+14), d.xy(out+tip, middle+9))
	d.printf(`<path class="pawl-tips" fill="#64748b" d="M%sL%sL%sZ"/>`,
		d.xy(out, middle+9), d.xy(out+tip, middle+5), d.xy(out+tip, middle+13))
	if d.sideways() {
		x, y := d.point(out+loop+clear+high(a.captions())/2+margin, middle)
		d.text(a.captions(), x, y, "middle")
	} else {
		x, y := d.point(out+loop+clear+margin, middle)
		d.text(a.captions(), x, y, "start")
	}
	d.printf("</g>\n")
}

// open begins an arrow, and says what a reader who points at it sees.
func (d *drawing) open(a *arrow) {
	d.printf(`<g class="pawl-arrow" data-from="%s" data-to="%s"><title>%s</title>`,
		escape(string(a.from)), escape(string(a.to)), escape(a.details()))
}

// dashes is the attribute of a dashed line, "" for others.
func (a *arrow) dashes() string {
	if a.dashed() {
		return ` stroke-dasharray="5 4"`
	}
	return ""
}

// text writes lines around a height.
func (d *drawing) text(lines []string, x, y float64, anchor string) {
	y += textSize*0.35 - lineHigh*float64(len(lines)-1)/2
	for i, line := range lines {
		d.printf(`<text class="pawl-text" x="%s" y="%s" text-anchor="%s" font-size="%s" fill="#64748b">%s</text>`,
			number1(x), number1(y+float64(i)*lineHigh), anchor, number1(textSize), escape(line))
	}
}
