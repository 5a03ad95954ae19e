package console

import (
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/workflow"
)

// field is a field of a form that is generated from a JSON Schema.
type field struct {
	Name     string // in the form: "p" and the JSON pointer
	Label    string
	Doc      string
	Kind     string // text, integer, number, choice or json
	Choices  []string
	Required bool
	Value    string
	Problem  string

	pointer string
	literal bool // the choices are JSON instead of texts
}

// schema is the part of a JSON Schema that determines a form. The API validates the rest.
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

// maxNesting is the maximum depth of objects with their own fields; deeper ones are entered as JSON.
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
	if err := json.Unmarshal(text, &s, lenient); err != nil {
		return schema{} // such as true, which allows any value
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
			pointer: pointer}
		f.kind(p)
		all = append(all, f)
	}
	return all
}

// kind sets how the value is entered.
func (f *field) kind(p schema) {
	types := slices.DeleteFunc(typesOf(p), func(t string) bool { return t == "null" })
	switch {
	case len(p.Enum) > 0:
		f.Kind = "choice"
		f.literal = slices.ContainsFunc(p.Enum, func(v jsontext.Value) bool { return v.Kind() != '"' && v.Kind() != 'n' })
		for _, v := range p.Enum {
			if f.literal {
				f.Choices = append(f.Choices, string(v))
			} else if v.Kind() == '"' && text(v) != "" { // same as an absent member
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

// typesOf returns the types that a schema allows, or nil for any.
func typesOf(s schema) (types []string) {
	if s.Type.Kind() == '"' {
		return []string{text(s.Type)}
	}
	if err := json.Unmarshal(s.Type, &types); err != nil {
		return nil
	}
	return types
}

// payloadOf returns the payload in a form as JSON; numbers are copied as written. It returns false if fields are invalid, with the problem
// at each.
func payloadOf(fields []field, sent url.Values) (payload jsontext.Value, good bool) {
	object := map[string]any{}
	good = true
	for i := range fields {
		f := &fields[i]
		f.Value = strings.TrimRight(strings.ReplaceAll(sent.Get(f.Name), "\r\n", "\n"), "\n")
		var value jsontext.Value
		value, f.Problem = f.json()
		good = good && f.Problem == ""
		if value != nil {
			put(object, strings.Split(f.pointer[1:], "/"), value)
		}
	}
	payload, err := json.Marshal(object, json.Deterministic(true), lenient)
	return payload, good && err == nil
}

// put sets a member of nested objects.
func put(object map[string]any, path []string, value jsontext.Value) {
	name := pointerPlain.Replace(path[0])
	if len(path) == 1 {
		object[name] = value
		return
	}
	inner, is := object[name].(map[string]any)
	if !is {
		inner = map[string]any{}
		object[name] = inner
	}
	put(inner, path[1:], value)
}

var pointerPlain = strings.NewReplacer("~1", "/", "~0", "~")

// json returns the value of a field; nil if it is empty.
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

// blame assigns the problems reported by the API to their fields, and returns the others.
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
