// Package diagram draws a workflow: as Mermaid and Graphviz text, which other
// tools lay out, and as an SVG that it lays out itself.
//
// A dot is where instances begin; a double border is where they end. Several
// transitions between the same two states are one arrow with several lines, and
// a transition that asks for a role shows it: ship [warehouse].
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
}

// arrow leads from one state to another, or to itself. It leads from "", which
// is no state, where instances are created.
type arrow struct {
	from, to workflow.State
	steps    []*workflow.Step
}

func pictureOf(w *workflow.Workflow) *picture {
	p := &picture{workflow: w}
	for _, s := range w.Steps {
		from := s.From
		if s.Start {
			from = []workflow.State{""}
		}
		for _, f := range from {
			for _, to := range s.To {
				if to == workflow.Stay {
					to = f
				}
				p.add(f, to, s)
			}
		}
	}
	return p
}

func (p *picture) add(from, to workflow.State, s *workflow.Step) {
	i := slices.IndexFunc(p.arrows, func(a *arrow) bool { return a.from == from && a.to == to })
	switch {
	case i < 0:
		p.arrows = append(p.arrows, &arrow{from, to, []*workflow.Step{s}})
	case !slices.Contains(p.arrows[i].steps, s):
		p.arrows[i].steps = append(p.arrows[i].steps, s)
	}
}

// lines are what stands at the arrow, a line for each transition.
func (a *arrow) lines() []string {
	var lines []string
	for _, s := range a.steps {
		lines = append(lines, caption(s))
	}
	return lines
}

func caption(s *workflow.Step) string {
	if len(s.Roles) == 0 {
		return s.Name
	}
	return s.Name + " [" + strings.Join(s.Roles, ", ") + "]"
}

// details are what there is to know about the arrow's transitions besides their
// names.
func (a *arrow) details() string {
	var all []string
	for _, s := range a.steps {
		lines := []string{caption(s)}
		if s.Doc != "" {
			lines = append(lines, s.Doc)
		}
		if len(s.Guards) > 0 {
			lines = append(lines, "only if: "+strings.Join(s.Guards, ", "))
		}
		if len(s.NotBy) > 0 {
			lines = append(lines, "not by who did: "+strings.Join(s.NotBy, ", "))
		}
		all = append(all, strings.Join(lines, "\n"))
	}
	return strings.Join(all, "\n\n")
}

func (p *picture) title() string {
	return fmt.Sprintf("%s, version %d", p.workflow.Name, p.workflow.Version)
}

// description says in words what the picture shows.
func (p *picture) description(current workflow.State) string {
	var said []string
	for _, a := range p.arrows {
		names := strings.Join(a.lines(), ", ")
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
		if p.workflow.IsFinal(s) {
			said = append(said, fmt.Sprintf("%s is final", s))
		}
	}
	if current != "" {
		said = append(said, fmt.Sprintf("the instance is in %s", current))
	}
	return strings.Join(said, "; ") + "."
}
