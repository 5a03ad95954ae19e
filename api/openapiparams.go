package api

import (
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/pawlhq/pawl/api/internal/contract"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// parameters describes what a route takes at an address. What a caller names himself by stands only in the document of a node that
// asks for no credential, and attributes come with the workflows that declare them.
func (d *describer) parameters(r *Route, path string) (all []contract.Parameter) {
	for i := range r.Params {
		p := &r.Params[i]
		if p.In == InPath && !strings.Contains(path, "{"+p.Name+"}") || p.Believed && !d.open || p.family() {
			continue
		}
		all = append(all, parameterOf(p))
	}
	return all
}

// attributes describes the attributes that a workflow declares, as parameters of the addresses where they can be asked for.
func (d *describer) attributes(w *workflow.Workflow) {
	for _, r := range d.routes {
		family := slices.IndexFunc(r.Params, func(p Param) bool { return p.family() })
		if family < 0 {
			continue
		}
		o := d.doc.Paths[addressOf(r.Path)][strings.ToLower(r.Method)]
		for _, name := range w.Attributes {
			for _, suffix := range append([]string{""}, r.Params[family].Suffixes...) {
				p := r.Params[family]
				p.Name, p.Doc = p.Name+name+suffix, "an attribute of `"+w.Name+"`"
				at := slices.IndexFunc(o.Parameters, func(known contract.Parameter) bool { return known.Name == p.Name })
				if at < 0 {
					o.Parameters = append(o.Parameters, parameterOf(&p))
				} else {
					o.Parameters[at].Description += ", of `" + w.Name + "`"
				}
			}
		}
	}
}

// parameterOf describes a parameter.
func parameterOf(p *Param) contract.Parameter {
	out := contract.Parameter{Name: p.Name, In: string(p.In), Required: p.Required || p.In == InPath, Schema: schemaOf(p),
		Description: linked(p.Doc)}
	if p.Needs != "" {
		out.Description += "; with `" + p.Needs + "`"
	}
	if p.Grant != "" {
		out.Description += "; `true` takes the grant `" + string(p.Grant) + "`"
	}
	if p.Many > 0 {
		out.Style, out.Explode = "form", true
		out.Schema = &jsonschema.Schema{Type: "array", Items: out.Schema, MaxItems: &p.Many}
	}
	return out
}

const (
	longestDouble = 1 << 53 // an integer that every JSON reader can hold
	// maxHeaderText is the longest header in characters that a text of 255 bytes can be quoted as.
	maxHeaderText = 2*transitions.MaxKey + 2
)

// schemaOf describes the values of a parameter. It is never stricter than what is served: lengths are counted in
// characters, where the server counts bytes.
func schemaOf(p *Param) contract.Schema {
	s := &jsonschema.Schema{Type: "string"}
	switch p.Kind {
	case Integer:
		s.Type, s.Minimum = "integer", number(p.Min)
		if p.Max <= longestDouble {
			s.Maximum = number(p.Max)
		} else {
			s.Format = "int64"
		}
	case Boolean:
		s.Type = "boolean"
	case Time:
		s.Format = "date-time"
	case UUID:
		s.Format = "uuid"
	case Position:
		s.Pattern = `^(start|now|0|[1-9][0-9]{0,18})$`
	case Scope, Key:
		s.MinLength, s.MaxLength = jsonschema.Ptr(1), jsonschema.Ptr(maxText)
		if p.In == InHeader {
			s.MaxLength = jsonschema.Ptr(maxHeaderText)
		}
	case Text:
		if p.In != InHeader {
			s.MaxLength = jsonschema.Ptr(max(int(p.Max), maxText))
		}
		for _, v := range p.Values {
			s.Enum = append(s.Enum, v)
		}
	}
	if p.Default != "" {
		s.Default = []byte(strconv.Quote(p.Default))
		if p.Kind == Integer || p.Kind == Boolean {
			s.Default = []byte(p.Default)
		}
	}
	return s
}

func number(n int64) *float64 {
	f := float64(n)
	return &f
}
