package diagram

import (
	"slices"

	"github.com/pawlhq/pawl/workflow"
)

// A picture with more elements is unreadable, and its time and size grow with the square of the states.
const (
	maxPieces = 20_000    // of links, from rank to rank
	maxPairs  = 4_000_000 // of a state and an arrow
)

const (
	rowGap    = 12.0 // between the states of a list
	listInset = 24.0 // between a state and what leaves it
)

// list draws a workflow without a layout: its states in the order of the definition, each with the transitions that leave it and the states
// that they lead to.
func (d *drawing) list() {
	leaving := map[workflow.State][]*arrow{}
	for _, a := range d.arrows {
		leaving[a.from] = append(leaving[a.from], a)
	}
	var names, texts float64
	tall := margin
	rows := append([]workflow.State{""}, d.workflow.States...)
	for _, s := range rows {
		names = max(names, stateWide, textWidth(string(s), nameSize)+2*sideRoom)
		for _, a := range leaving[s] {
			texts = max(texts, widest(a.listed(), textSize))
		}
		tall += rowHigh(leaving[s]) + rowGap
	}
	d.head(names+listInset+texts+2*margin, tall-rowGap+margin)
	y := margin
	for _, s := range rows {
		high := rowHigh(leaving[s])
		if s == "" {
			d.printf(`<circle class="pawl-tips" cx="%s" cy="%s" r="%s" fill="#64748b"/>`+"\n",
				number1(margin+names/2), number1(y+high/2), number1(dot))
		} else {
			d.state(s, margin+names/2, y+high/2, box{names, stateHigh})
		}
		line := y + (high-linesHigh(leaving[s]))/2 + lineHigh/2
		for _, a := range leaving[s] {
			lines := a.listed()
			d.open(a)
			d.text(lines, margin+names+listInset, line+lineHigh*float64(len(lines)-1)/2, "start")
			d.printf("</g>\n")
			line += lineHigh * float64(len(lines))
		}
		y += high + rowGap
	}
	d.printf("</svg>\n")
}

// listed are the captions of an arrow in a list.
func (a *arrow) listed() []string {
	lines := slices.Clone(a.captions())
	for i := range lines {
		lines[i] += " → " + string(a.to)
	}
	return lines
}

func linesHigh(arrows []*arrow) float64 {
	n := 0
	for _, a := range arrows {
		n += len(a.lines)
	}
	return lineHigh * float64(n)
}

func rowHigh(arrows []*arrow) float64 { return max(stateHigh, linesHigh(arrows)) }
