package diagram

import (
	"fmt"
	"strings"

	"github.com/pawlhq/pawl/workflow"
)

// DOT draws the workflow in the language of Graphviz. It marks no state when
// the workflow does not have the current one.
func DOT(w *workflow.Workflow, o Options) string {
	p := pictureOf(w)
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %s {\n", dotQuote(w.Name))
	if o.Direction == LeftRight {
		b.WriteString("    rankdir=LR\n")
	}
	fmt.Fprintf(&b, "    tooltip=%s\n", dotQuote(p.title()))
	b.WriteString("    node [shape=box, style=\"rounded,filled\", fillcolor=\"#f8fafc\", " +
		"color=\"#64748b\", fontname=\"Helvetica\", fontsize=12]\n")
	b.WriteString("    edge [color=\"#64748b\", fontname=\"Helvetica\", fontsize=11, arrowsize=0.7]\n")
	b.WriteString("    \"\" [shape=circle, width=0.14, style=filled, fillcolor=\"#64748b\", label=\"\", tooltip=\"start\"]\n")
	for _, s := range w.States {
		if !p.isInside(s) {
			dotState(&b, w, s, o.Current, "    ")
		}
	}
	for _, a := range p.arrows {
		style := ""
		if a.dashed() {
			style = ", style=dashed"
		}
		fmt.Fprintf(&b, "    %s -> %s [label=%s, tooltip=%s%s]\n", dotQuote(string(a.from)), dotQuote(string(a.to)),
			dotQuote(strings.Join(a.captions(), "\n")), dotQuote(a.details()), style)
	}
	b.WriteString("}\n")
	return b.String()
}

// dotState writes a state, a composite one with a cluster for each region.
func dotState(b *strings.Builder, w *workflow.Workflow, s, current workflow.State, indent string) {
	var attributes []string
	if w.IsFinal(s) {
		attributes = append(attributes, "peripheries=2")
	}
	if current.Has(s) {
		attributes = append(attributes, `fillcolor="#fde68a"`, `color="#b45309"`, "penwidth=2")
	}
	name := dotQuote(string(s))
	regions := w.Regions(s)
	if len(regions) > 0 {
		fmt.Fprintf(b, "%ssubgraph %s {\n", indent, dotQuote("cluster "+string(s)))
		defer fmt.Fprintf(b, "%s}\n", indent)
		indent += "    "
	}
	fmt.Fprintf(b, "%s%s", indent, name)
	if len(attributes) > 0 {
		fmt.Fprintf(b, " [%s]", strings.Join(attributes, ", "))
	}
	b.WriteString("\n")
	for _, r := range regions {
		fmt.Fprintf(b, "%ssubgraph %s {\n%s    label=%s; style=dashed\n", indent, dotQuote("cluster "+string(s)+" "+r.Name+" "+string(r.States[0])),
			indent, dotQuote(r.Name))
		for _, inner := range r.States {
			dotState(b, w, inner, current, indent+"    ")
		}
		fmt.Fprintf(b, "%s}\n", indent)
	}
}

// dotQuote writes a string of the language. A backslash there begins an escape
// of the label, so that a text's own has to be doubled.
func dotQuote(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == 0 {
			return -1 // ends the string in Graphviz
		}
		return r
	}, s)
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\r\n", `\n`, "\n", `\n`, "\r", `\n`).Replace(s) + `"`
}
