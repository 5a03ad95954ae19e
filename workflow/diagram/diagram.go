// Package diagram draws a workflow: as Mermaid and Graphviz text, which other
// tools lay out, and as an SVG that it lays out itself.
//
// A dot is where instances begin; a double border is where they end. Several
// transitions between the same two states are one arrow with several lines, and
// a transition that asks for a role shows it: ship [warehouse]. One that happens
// by itself says when: expire after 24h, or at the time that a timer takes from
// the data: expire at deadline.
//
// An activity is drawn as its three parts: pay leads into the state where it is
// under way, pay done out of it, and pay failed, dashed but in Mermaid, which
// has no dashes.
package diagram

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pawlhq/pawl/workflow"
)

// Direction is the way that a diagram reads.
type Direction int

// The directions. A workflow with many transitions is easier to read top down.
const (
	TopDown Direction = iota
	LeftRight
)

// Options are how a workflow is drawn. The zero value draws the definition, top
// down.
type Options struct {
	Current   workflow.State // the state that an instance is in; "" marks none
	Direction Direction
}

// picture is what a workflow looks like, before anything has a place.
type picture struct {
	workflow *workflow.Workflow
	arrows   []*arrow
	between  map[[2]workflow.State]*arrow // the same, by their ends
}

// arrow leads from one state to another, or to itself. An arrow from "" creates instances.
type arrow struct {
	from, to workflow.State
	lines    []line
}

func pictureOf(w *workflow.Workflow) *picture {
	p := &picture{workflow: w, between: map[[2]workflow.State]*arrow{}}
	for _, s := range w.Steps {
		from := s.From
		if s.Start {
			from = []workflow.State{""}
		}
		for _, f := range from {
			timers := slices.DeleteFunc(w.TimersIn(f), func(t *workflow.Timer) bool { return t.Do != s.Name })
			if s.Work != nil {
				p.add(f, s.Work.Via, line{step: s, timers: timers})
				continue
			}
			for _, to := range s.To {
				if to == workflow.Stay {
					to = f
				}
				p.add(f, to, line{step: s, timers: timers})
			}
		}
		if s.Work != nil {
			ended, gaveUp := s.Ends()
			for _, to := range ended {
				p.add(s.Work.Via, to, line{step: s, end: done})
			}
			for _, to := range gaveUp {
				p.add(s.Work.Via, to, line{step: s, end: failed})
			}
		}
	}
	return p
}

func (p *picture) add(from, to workflow.State, l line) {
	if composite, is := workflow.LastOf(to); is {
		to, l.last = composite, true
	}
	ends := [2]workflow.State{from, to}
	a := p.between[ends]
	switch {
	case a == nil:
		a = &arrow{from, to, []line{l}}
		p.between[ends] = a
		p.arrows = append(p.arrows, a)
	case !slices.ContainsFunc(a.lines, func(other line) bool { return other.step == l.step && other.end == l.end }):
		a.lines = append(a.lines, l)
	}
}

// captions are what stands at the arrow, a line for each transition.
func (a *arrow) captions() []string {
	var captions []string
	for _, l := range a.lines {
		captions = append(captions, l.caption())
	}
	return captions
}

// details are what there is to know about the arrow's transitions besides their
// names.
func (a *arrow) details() string {
	var all []string
	for _, l := range a.lines {
		all = append(all, l.details())
	}
	return strings.Join(all, "\n\n")
}

// dashed says that only failures lead this way.
func (a *arrow) dashed() bool {
	return !slices.ContainsFunc(a.lines, func(l line) bool { return l.end != failed })
}

// isInside reports whether a state is inside a composite one.
func (p *picture) isInside(s workflow.State) bool {
	return slices.ContainsFunc(p.workflow.States, func(composite workflow.State) bool {
		return slices.ContainsFunc(p.workflow.Regions(composite), func(r workflow.RegionDescription) bool {
			return slices.Contains(r.States, s)
		})
	})
}

func (p *picture) title() string {
	return fmt.Sprintf("%s, version %d", p.workflow.Name, p.workflow.Version)
}

// description says in words what the picture shows.
func (p *picture) description() string {
	var said []string
	for _, a := range p.arrows {
		names := strings.Join(a.captions(), ", ")
		switch a.from {
		case "":
			said = append(said, fmt.Sprintf("%s begins in %s", names, a.to))
		case a.to:
			said = append(said, fmt.Sprintf("%s stays in %s", names, a.to))
		default:
			said = append(said, fmt.Sprintf("%s leads from %s to %s", names, a.from, a.to))
		}
	}
	for _, s := range p.workflow.States {
		for _, r := range p.workflow.Regions(s) {
			said = append(said, fmt.Sprintf("inside %s is one of %v", s, r.States))
		}
		if p.workflow.IsFinal(s) {
			said = append(said, fmt.Sprintf("%s is final", s))
		}
	}
	return strings.Join(said, "; ") + "."
}
