package diagram

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pawlhq/pawl/workflow"
)

// Mermaid draws the workflow as a Mermaid stateDiagram-v2. It marks no state
// when the workflow does not have the current one.
func Mermaid(w *workflow.Workflow, o Options) string {
	p := pictureOf(w)
	ids := mermaidIDs(w.States)
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n")
	fmt.Fprintf(&b, "    accTitle: %s\n", p.title())
	direction := "TB"
	if o.Direction == LeftRight {
		direction = "LR"
	}
	fmt.Fprintf(&b, "    direction %s\n", direction)
	for _, s := range w.States {
		if ids[s] != string(s) {
			fmt.Fprintf(&b, "    state \"%s\" as %s\n", s, ids[s])
		}
	}
	for _, s := range w.States {
		if !p.isInside(s) {
			mermaidInside(&b, w, ids, s, "    ")
		}
	}
	for _, a := range p.arrows {
		from := "[*]"
		if a.from != "" {
			from = ids[a.from]
		}
		fmt.Fprintf(&b, "    %s --> %s : %s\n", from, ids[a.to], strings.Join(a.captions(), "<br/>"))
	}
	for _, s := range w.States {
		if w.IsFinal(s) {
			fmt.Fprintf(&b, "    %s --> [*]\n", ids[s])
		}
	}
	if current := o.Current.Active(); len(current) > 0 && slices.Contains(w.States, current[0]) {
		b.WriteString("    classDef current fill:#fde68a,stroke:#b45309,color:#451a03,stroke-width:2px\n")
		for _, s := range current {
			fmt.Fprintf(&b, "    class %s current\n", ids[s])
		}
	}
	return b.String()
}

// mermaidInside writes what is inside a composite state.
func mermaidInside(b *strings.Builder, w *workflow.Workflow, ids map[workflow.State]string, s workflow.State, indent string) {
	regions := w.Regions(s)
	if len(regions) == 0 {
		return
	}
	fmt.Fprintf(b, "%sstate %s {\n", indent, ids[s])
	for i, r := range regions {
		if i > 0 {
			fmt.Fprintf(b, "%s    --\n", indent)
		}
		fmt.Fprintf(b, "%s    [*] --> %s\n", indent, ids[r.States[0]])
		for _, inner := range r.States {
			fmt.Fprintf(b, "%s    %s\n", indent, ids[inner])
			mermaidInside(b, w, ids, inner, indent+"    ")
		}
	}
	fmt.Fprintf(b, "%s}\n", indent)
}

// mermaidWords are the words that Mermaid would not take for a state's name.
var mermaidWords = []string{
	"acctitle", "accdescr", "as", "class", "classdef", "click", "default", "direction", "end", "hide", "href",
	"note", "root", "root_end", "root_start", "scale", "state", "style",
}

// mermaidIDs gives every state an identifier, its name where Mermaid allows.
func mermaidIDs(states []workflow.State) map[workflow.State]string {
	ids := map[workflow.State]string{}
	taken := map[string]bool{}
	for _, s := range states {
		taken[string(s)] = true
	}
	for _, s := range states {
		id := strings.ReplaceAll(string(s), "-", "_")
		if id[0] <= '9' || slices.Contains(mermaidWords, id) {
			id = "s_" + id
		}
		for id != string(s) && taken[id] {
			id += "_"
		}
		taken[id] = true
		ids[s] = id
	}
	return ids
}
