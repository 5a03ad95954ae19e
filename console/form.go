package console

import (
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/workflow"
)

// field is one of a form that is made of a JSON Schema.
type field struct {
	Name     string // in the form: "p" and the JSON pointer
	Label    string
	Doc      string
	Kind     string // text, integer, number, choice or json
	Choices  []string
	Required bool
	Value    string
	Problem  string

	pointer  string
	optional bool // what it is in may be left out
	literal  bool // the choices are JSON, not texts
}

// schema is the part of a JSON Schema from which a form is made. The rest is checked when the form is sent, by the API.
type schema struct {
	Type        jsontext.Value            `json:"type"`
	Properties  jsontext.Value            `json:"properties"`
	Required    []string                  `json:"required"`
	Enum        []jsontext.Value          `json:"enum"`
	Const       jsontext.Value            `json:"const"`
	Description string                    `json:"description"`
	Others      jsontext.Value            `json:"additionalProperties"`
	Ref         string                    `json:"$ref"`
	Defs        map[string]jsontext.Value `json:"$defs"`
}

// maxNesting is how many objects in each other have fields of their own; what is deeper is written as JSON.
const maxNesting = 3

// fieldsOf returns the fields of a payload; nil if it must be entered as JSON, because it is not an object or any value is valid.
func fieldsOf(text jsontext.Value) []field {
	root := readSchema(text)
	closed := string(root.Others) == "false"
	if !slices.Contains(typesOf(root), "object") {
		return nil
	}
	fields := root.fields("", root.Defs, false, 1)
	if fields == nil && closed {
		return []field{}
	}
	return fields
}

func readSchema(text jsontext.Value) (s schema) {
	if err := json.Unmarshal(text, &s, reading); err != nil {
		return schema{} // such as true, which is any
	}
	return s
}

func (s *schema) fields(at string, defs map[string]jsontext.Value, optional bool, depth int) (all []field) {
	for _, m := range members(s.Properties) {
		p := readSchema(m.value)
		if name, is := strings.CutPrefix(p.Ref, "#/$defs/"); is {
			described := p.Description
			if p = readSchema(defs[name]); described != "" {
				p.Description = described
			}
		}
		pointer := at + "/" + escapePointer(m.name)
		required := slices.Contains(s.Required, m.name)
		if slices.Contains(typesOf(p), "object") && len(p.Properties) > 0 && depth < maxNesting {
			all = append(all, p.fields(pointer, defs, optional || !required, depth+1)...)
			continue
		}
		f := field{Name: "p" + pointer, Label: strings.TrimPrefix(pointer, "/"), Doc: p.Description, Required: required && !optional,
			pointer: pointer, optional: optional || !required}
		f.kind(p)
		all = append(all, f)
	}
	return all
}

// kind is how a value is entered.
func (f *field) kind(p schema) {
	types := slices.DeleteFunc(typesOf(p), func(t string) bool { return t == "null" })
	switch {
	case len(p.Enum) > 0:
		f.Kind = "choice"
		f.literal = slices.ContainsFunc(p.Enum, func(v jsontext.Value) bool { return v.Kind() != '"' && v.Kind() != 'n' })
		for _, v := range p.Enum {
			if f.literal {
				f.Choices = append(f.Choices, string(v))
			} else if v.Kind() == '"' && text(v) != "" { // which is what is left out
				f.Choices = append(f.Choices, text(v))
			}
		}
	case len(types) != 1:
		f.Kind = "json"
	case types[0] == "boolean":
		f.Kind, f.Choices, f.literal = "choice", []string{"true", "false"}, true
	case types[0] == "string":
		f.Kind = "text"
	case types[0] == "integer", types[0] == "number":
		f.Kind = types[0]
	default:
		f.Kind = "json"
	}
}

// typesOf are the types that a schema allows, none where it does not say.
func typesOf(s schema) (types []string) {
	if s.Type.Kind() == '"' {
		return []string{text(s.Type)}
	}
	if err := json.Unmarshal(s.Type, &types); err != nil {
		return nil
	}
	return types
}

// take fills the fields with what was sent.
func take(fields []field, sent url.Values) {
	for i := range fields {
		fields[i].Value = strings.TrimRight(strings.ReplaceAll(sent.Get(fields[i].Name), "\r\n", "\n"), "\n")
	}
}

// payloadOf is what the fields say, as JSON; numbers are taken over as they are written. It is false where a field says nothing that can
// be sent, with the problem at the field.
func payloadOf(fields []field) (jsontext.Value, bool) {
	root := &node{}
	good := true
	for i := range fields {
		f := &fields[i]
		value, problem := f.json()
		if f.Problem = problem; problem != "" {
			good = false
		}
		if value != nil {
			root.put(strings.Split(f.pointer[1:], "/"), value)
		}
	}
	if !good {
		return nil, false
	}
	return root.json(), true
}

// json is the value of a field; nil where it is left out.
func (f *field) json() (value jsontext.Value, problem string) {
	if f.Value == "" {
		return nil, ""
	}
	if f.Kind == "text" || f.Kind == "choice" && !f.literal {
		quoted, err := jsontext.AppendQuote(nil, f.Value)
		if err != nil {
			return nil, "is not valid UTF-8"
		}
		return quoted, ""
	}
	value = jsontext.Value(strings.TrimSpace(f.Value))
	if !value.IsValid() {
		if f.Kind == "json" {
			return nil, "is not JSON"
		}
		return nil, "is not a number"
	}
	if (f.Kind == "integer" || f.Kind == "number") && value.Kind() != '0' {
		return nil, "is not a number"
	}
	return value, ""
}

// node is an object that is being made, or a value.
type node struct {
	value jsontext.Value
	names []string
	parts map[string]*node
}

func (n *node) put(path []string, value jsontext.Value) {
	if len(path) == 0 {
		n.value = value
		return
	}
	if n.parts == nil {
		n.parts = map[string]*node{}
	}
	name := pointerPlain.Replace(path[0])
	if n.parts[name] == nil {
		n.parts[name], n.names = &node{}, append(n.names, name)
	}
	n.parts[name].put(path[1:], value)
}

var pointerPlain = strings.NewReplacer("~1", "/", "~0", "~")

func (n *node) json() jsontext.Value {
	if n.value != nil {
		return n.value
	}
	out := jsontext.Value("{")
	for i, name := range n.names {
		if i > 0 {
			out = append(out, ',')
		}
		out, _ = jsontext.AppendQuote(out, name) // a name of the schema
		out = append(append(out, ':'), n.parts[name].json()...)
	}
	return append(out, '}')
}

// blame puts the problems that the API has found to their fields, and returns the others.
func blame(fields []field, problems []workflow.FieldError) (others []workflow.FieldError) {
	for _, p := range problems {
		i := slices.IndexFunc(fields, func(f field) bool { return p.Pointer == f.pointer || strings.HasPrefix(p.Pointer, f.pointer+"/") })
		if i < 0 {
			others = append(others, p)
			continue
		}
		fields[i].Problem = p.Message
	}
	return others
}
