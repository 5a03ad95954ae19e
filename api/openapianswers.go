package api

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/pawlhq/pawl/api/internal/contract"
	"github.com/pawlhq/pawl/workflow"
)

// answers describes how a request may end well.
func (d *describer) answers(r *Route, o *contract.Operation) {
	byStatus := map[int][]Answer{}
	for _, a := range r.Answers {
		byStatus[a.Status] = append(byStatus[a.Status], a)
	}
	for status, answers := range byStatus {
		response := contract.Response{Description: statusTexts[status], Headers: map[string]contract.Ref{}, Content: d.content(answers)}
		for _, h := range r.Headers {
			response.Headers[h.Name] = d.header(h)
		}
		name := "Response" + strconv.Itoa(status) + typesOf(answers)
		o.Responses[strconv.Itoa(status)] = d.response(name, &response)
	}
}

// typesOf names what answers have.
func typesOf(answers []Answer) string {
	var all []string
	for _, a := range answers {
		name := pascal(a.Media[strings.LastIndexByte(a.Media, '/')+1:])
		if t := a.Type; t != nil && a.Media == mediaJSON {
			if name = t.Name(); t.Kind() == reflect.Slice {
				name = t.Elem().Name() + "List"
			}
		}
		if name != "" && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return strings.Join(all, "Or")
}

// content is what answers with one status have, by media type; where there are several types, it is one of them.
func (d *describer) content(answers []Answer) map[string]contract.Media {
	all := map[string][]contract.Schema{}
	for _, a := range answers {
		if a.Media != "" {
			all[a.Media] = append(all[a.Media], d.shown(&a))
		}
	}
	content := map[string]contract.Media{}
	for media, schemas := range all {
		content[media] = contract.Media{Schema: anyOf(schemas)}
	}
	return content
}

func (d *describer) shown(a *Answer) contract.Schema {
	switch {
	case a.Media == mediaEventStream:
		return &jsonschema.Schema{Type: "string", Description: "server-sent events; see /asyncapi.json"}
	case a.Type == nil || a.Media != mediaJSON:
		return &jsonschema.Schema{Type: "string"}
	}
	return d.schemas.Answer(a.Type)
}

// anyOf allows what one of the schemas allows, each of which counts once.
func anyOf(schemas []contract.Schema) contract.Schema {
	all := &jsonschema.Schema{}
	for _, s := range schemas {
		if !slices.ContainsFunc(all.AnyOf, func(other contract.Schema) bool { return reflect.DeepEqual(s, other) }) {
			all.AnyOf = append(all.AnyOf, s)
		}
	}
	if len(all.AnyOf) == 1 {
		return all.AnyOf[0]
	}
	return all
}

// oneProblem allows one of some problems, which their codes tell apart.
func (d *describer) oneProblem(codes []workflow.CodeInfo) contract.Schema {
	all, mapping := &jsonschema.Schema{}, map[string]string{}
	for _, c := range codes {
		ref := d.schemas.Ref(problemName(c.Code))
		all.OneOf = append(all.OneOf, ref)
		mapping[string(c.Code)] = ref.Ref
	}
	if len(codes) == 1 {
		return all.OneOf[0]
	}
	all.Extra = map[string]any{"discriminator": map[string]any{"propertyName": "code", "mapping": mapping}}
	return all
}

// refusals describes the problems of a route, by status.
func (d *describer) refusals(r *Route, o *contract.Operation) {
	byStatus := map[int][]workflow.CodeInfo{}
	for _, c := range r.Codes {
		byStatus[c.Info().Status] = append(byStatus[c.Info().Status], c.Info())
	}
	for status, codes := range byStatus {
		var names []string
		for _, c := range codes {
			names = append(names, "`"+string(c.Code)+"`: "+c.Meaning)
		}
		response := contract.Response{Description: strings.Join(names, "; "), Headers: map[string]contract.Ref{},
			Content: map[string]contract.Media{mediaProblem: {Schema: d.oneProblem(codes)}}}
		for _, h := range append(AnswerHeaders(), ofRates...) {
			if slices.Contains(ofRefusals[status], h.Name) {
				response.Headers[h.Name] = d.header(h)
			}
		}
		o.Responses[strconv.Itoa(status)] = d.response("Response"+strconv.Itoa(status), &response)
	}
}

// ofRefusals are the headers that problems of a status have.
var ofRefusals = map[int][]string{401: {headerChallenge}, 409: {headerRetryAfter}, 503: {headerRetryAfter},
	429: {headerRetryAfter, headerRateLimit, headerRatePolicy}}

func (d *describer) header(h Header) contract.Ref {
	header := contract.Header{Description: linked(h.Doc), Schema: &jsonschema.Schema{Type: "string"}}
	name, known := d.share("ResponseHeader"+pascal(h.Name), header)
	if !known {
		d.doc.Components.Headers[name] = header
	}
	return contract.Ref{To: atHeaders + name}
}

// response makes a response a component, once for all with the same text: most routes are refused alike.
func (d *describer) response(name string, r *contract.Response) contract.Ref {
	name, known := d.share(name, r)
	if !known {
		d.doc.Components.Responses[name] = *r
	}
	return contract.Ref{To: atResponses + name}
}

// share returns the name of a component with a text, and whether there is one already.
func (d *describer) share(name string, component any) (string, bool) {
	text, err := json.Marshal(component, json.Deterministic(true))
	if err != nil {
		panic("api: " + err.Error())
	}
	key := name + " " + string(text)
	known := d.shared[key]
	if known != "" {
		return known, true
	}
	d.shared[key] = d.names.unique(name)
	return d.shared[key], false
}

var statusTexts = map[int]string{101: "the connection is a WebSocket from now on", 200: "done, or found", 201: "created",
	202: "accepted; its end comes later", 204: "done; there is nothing to say", 304: "the caller has it already"}
