package diagram

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/pawlhq/pawl/workflow"
)

// Drawn is an SVG of a workflow, in which any state can be marked. It is
// immutable.
type Drawn struct {
	workflow *workflow.Workflow
	text     []byte
	marks    []mark
	size     int
}

// mark is a piece of the text that depends on the current state: a state, or
// for no state the end of the description.
type mark struct {
	state      workflow.State
	at, length int
	marked     []byte // the text of a state that is the current one
}

// Draw lays a workflow out, as [SVG] does it.
func Draw(w *workflow.Workflow, direction Direction) *Drawn {
	d := newDrawing(pictureOf(w), Options{Direction: direction})
	d.write()
	drawn := &Drawn{workflow: w, text: bytes.Clone(d.out.Bytes()), marks: d.marks, size: d.out.Len()}
	for _, m := range drawn.marks {
		drawn.size += len(m.marked)
	}
	return drawn
}

// Size is about how many bytes of memory the picture takes.
func (d *Drawn) Size() int { return d.size }

// SVG returns the picture with the current state marked; "" marks none. It fails
// when that is not one of the workflow's.
func (d *Drawn) SVG(current workflow.State) ([]byte, error) {
	if current == "" {
		return bytes.Clone(d.text), nil
	}
	if active := current.Active(); len(active) == 0 || !slices.Contains(d.workflow.States, active[0]) {
		return nil, fmt.Errorf("diagram: workflow %q has no state %q", d.workflow.Name, current)
	}
	out := make([]byte, 0, len(d.text)+256)
	from := 0
	for _, m := range d.marks {
		switch {
		case m.state == "": // before the full stop
			out = append(out, d.text[from:m.at-1]...)
			out = fmt.Appendf(out, "; %s.", escape("the instance is in "+string(current)))
		case current.Has(m.state):
			out = append(append(out, d.text[from:m.at]...), m.marked...)
		default:
			continue
		}
		from = m.at + m.length
	}
	return append(out, d.text[from:]...), nil
}
