package api

import (
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/pawlhq/pawl/api/internal/contract"
	"github.com/pawlhq/pawl/transitions"
)

// parameterOf describes a parameter. A family of them is an object, whose members are parameters.
func parameterOf(p *Param) contract.Parameter {
	out := contract.Parameter{Name: p.Name, In: string(p.In), Required: p.Required || p.In == InPath, Schema: schemaOf(p),
		Description: linked(p.Doc)}
	if p.Needs != "" {
		out.Description += "; with `" + p.Needs + "`"
	}
	if p.Grant != "" {
		out.Description += "; `true` takes the grant `" + string(p.Grant) + "`"
	}
	if base, family := strings.CutSuffix(p.Name, "."); family {
		out.Name, out.Style, out.Explode = base, "form", true
		out.Schema = &jsonschema.Schema{Type: "object", PatternProperties: map[string]contract.Schema{"^" + regexp.QuoteMeta(p.Name): out.Schema},
			AdditionalProperties: &jsonschema.Schema{Type: "string"}} // among these validators see the other parameters
		out.Description += ", as `" + p.Name + "NAME`"
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
	f := float64(min(n, math.MaxInt64))
	return &f
}
