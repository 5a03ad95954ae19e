package api

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/pawlhq/pawl/api/internal/contract"
	"github.com/pawlhq/pawl/workflow"
)

// workflow describes the transitions of a workflow, each at the addresses that it has, and its attributes.
func (d *describer) workflow(w *workflow.Workflow) error {
	d.doc.Tags = append(d.doc.Tags, contract.Tag{Name: w.Name,
		Description: "The workflow " + w.Name + ", version " + strconv.Itoa(w.Version) + "."})
	for _, s := range w.Steps {
		if s.Internal || s.Auto {
			continue
		}
		payload, err := d.payload(w, s)
		if err != nil {
			return err
		}
		for _, r := range d.routes {
			if strings.Contains(r.Path, "{transition}") {
				d.transition(&r, w, s, payload)
			}
		}
	}
	return nil
}

// payload makes the schema of a payload a component. Steps with one name have one payload.
func (d *describer) payload(w *workflow.Workflow, s *workflow.Step) (contract.Schema, error) {
	key := w.Name + "." + s.Name
	if name := d.payloads[key]; name != "" {
		return d.schemas.Ref(name), nil
	}
	text, err := s.Schema()
	if err != nil {
		return nil, err
	}
	schema := &jsonschema.Schema{}
	if err := json.Unmarshal(text, schema); err != nil {
		return nil, err
	}
	schema.Schema = "" // its draft is that of the document
	name := d.names.unique(identifier(w.Name) + "_" + pascal(s.Name))
	d.payloads[key], d.doc.Components.Schemas[name] = name, schema
	return d.schemas.Ref(name), nil
}

// transition describes a transition at one address. One of an instance by its id is that of each workflow which has a
// transition with the name.
func (d *describer) transition(r *Route, w *workflow.Workflow, s *workflow.Step, payload contract.Schema) {
	byID := strings.Contains(r.Path, "{id}")
	byKey := strings.Contains(r.Path, "{business_key}")
	if s.Start && (byID || byKey) || !s.Start && !byID && !byKey {
		return
	}
	path := strings.NewReplacer("{workflow}", w.Name, "{transition}", s.Name).Replace(addressOf(r.Path))
	id := w.Name + "." + s.Name
	switch {
	case byID:
		id = s.Name + ".by_id"
	case byKey:
		id += ".by_key"
	}
	if known := d.doc.Paths[path]["post"]; known != nil {
		all := []contract.Schema{known.Body.Content[mediaJSON].Schema.(contract.Schema)}
		if all[0].Ref == "" {
			all = all[0].AnyOf
		}
		if !slices.Contains(known.Tags, w.Name) {
			known.Tags = append(known.Tags, w.Name)
		}
		known.Description += "\n\n" + stepText(w, s)
		known.Body.Required = known.Body.Required && !optional(d, payload)
		known.Body.Content[mediaJSON] = contract.Media{Schema: anyOf(append(all, payload))}
		return
	}
	o := d.operation(r, path, id)
	o.Tags = []string{w.Name}
	o.Summary, o.Description = cmp.Or(s.Doc, s.Name), stepText(w, s)
	o.Body = &contract.Body{Required: !optional(d, payload), Content: map[string]contract.Media{mediaJSON: {Schema: payload}}}
	d.put(path, r.Method, o)
}

// optional reports whether a payload needs no member, so that no body is as good as an empty one.
func optional(d *describer, payload contract.Schema) bool {
	s, _ := d.doc.Components.Schemas[strings.TrimPrefix(payload.Ref, atSchemas)].(contract.Schema)
	return s != nil && len(s.Required) == 0 && len(s.AnyOf) == 0
}

// stepText says what a transition is, in a sentence for each part.
func stepText(w *workflow.Workflow, s *workflow.Step) string {
	var b strings.Builder
	b.WriteString("`" + w.Name + "`: ")
	if s.Start {
		b.WriteString("creates an instance in ")
	} else {
		b.WriteString("from " + states(s.From) + " to ")
	}
	b.WriteString(states(s.To) + ".")
	if len(s.Roles) > 0 {
		b.WriteString(" For " + orList(s.Roles) + ".")
	}
	if s.Work != nil {
		b.WriteString(" It takes time: 202, and its end later.")
	}
	return b.String()
}

func states(list []workflow.State) string {
	var names []string
	for _, s := range list {
		names = append(names, "`"+string(s)+"`")
	}
	return orList(names)
}
