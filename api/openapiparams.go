package api

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/pawlhq/pawl/api/internal/contract"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// parameters describes the parameters of a route at a path. Headers by which callers name themselves are included only for a node without
// credentials, and attributes come with the workflows that declare them.
func (d *describer) parameters(r *Route, path string) (all []contract.Ref) {
	for i := range r.Params {
		p := &r.Params[i]
		if p.In == InPath && !strings.Contains(path, "{"+p.Name+"}") || p.Believed && !d.open || p.family() {
			continue
		}
		ref, known := d.parametersOf[p]
		if !known {
			ref = d.parameter(p)
			d.parametersOf[p] = ref
		}
		all = append(all, ref)
	}
	return all
}

// parameter makes a parameter a component, once for all with the same text.
func (d *describer) parameter(p *Param) contract.Ref {
	parameter := contract.Parameter{Name: p.Name, In: string(p.In), Required: p.Required || p.In == InPath, Schema: schemaOf(p),
		Description: linked(p.Doc)}
	if p.Needs != "" {
		parameter.Description += "; with `" + p.Needs + "`"
	}
	if p.Grant != "" {
		parameter.Description += "; `true` takes the grant `" + string(p.Grant) + "`"
	}
	if p.Many > 0 {
		parameter.Style, parameter.Explode = "form", true
		parameter.Schema = &jsonschema.Schema{Type: "array", Items: parameter.Schema, MaxItems: &p.Many}
	}
	name, known := d.share(pascal(string(p.In))+pascal(p.Name), parameter)
	if !known {
		d.doc.Components.Parameters[name] = parameter
	}
	return contract.Ref{To: atParams + name}
}

// attributes describes the attributes that workflows declare, as parameters of the addresses where they can be asked for.
func (d *describer) attributes(workflows []*workflow.Workflow) {
	var all []string
	declaring := map[string][]string{}
	for _, w := range workflows {
		for _, name := range w.Attributes {
			if declaring[name] == nil {
				all = append(all, name)
			}
			declaring[name] = append(declaring[name], "`"+w.Name+"`")
		}
	}
	for _, r := range d.routes {
		family := slices.IndexFunc(r.Params, func(p Param) bool { return p.family() })
		if family < 0 {
			continue
		}
		o := d.doc.Paths[addressOf(r.Path)][strings.ToLower(r.Method)]
		for _, name := range all {
			for _, suffix := range append([]string{""}, r.Params[family].Suffixes...) {
				p := r.Params[family]
				p.Name, p.Doc = p.Name+name+suffix, "an attribute of "+strings.Join(declaring[name], ", of ")
				o.Parameters = append(o.Parameters, d.parameter(&p))
			}
		}
	}
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
			s.Format, s.Maximum = "int64", number(math.MaxInt64)
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
