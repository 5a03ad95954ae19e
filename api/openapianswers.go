package api

import (
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
		response := contract.Response{Description: statusText(status), Headers: map[string]contract.Ref{}, Content: d.content(answers)}
		for _, h := range r.Headers {
			response.Headers[h.Name] = d.header(h)
		}
		o.Responses[strconv.Itoa(status)] = d.response(status, &response)
	}
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

func anyOf(schemas []contract.Schema) contract.Schema {
	if len(schemas) == 1 {
		return schemas[0]
	}
	return &jsonschema.Schema{AnyOf: schemas}
}

// refusals describes the problems of a route, by status.
func (d *describer) refusals(r *Route, o *contract.Operation) {
	byStatus := map[int][]workflow.CodeInfo{}
	for _, c := range r.Codes {
		byStatus[c.Info().Status] = append(byStatus[c.Info().Status], c.Info())
	}
	for status, codes := range byStatus {
		var schemas []contract.Schema
		var names []string
		for _, c := range codes {
			schemas = append(schemas, d.schemas.Ref(problemName(c.Code)))
			names = append(names, "`"+string(c.Code)+"`: "+c.Meaning)
		}
		response := contract.Response{Description: strings.Join(names, "; "), Headers: map[string]contract.Ref{},
			Content: map[string]contract.Media{mediaProblem: {Schema: anyOf(schemas)}}}
		for _, h := range ofRefusals[status] {
			response.Headers[h] = d.header(headerOf(h))
		}
		o.Responses[strconv.Itoa(status)] = d.response(status, &response)
	}
}

// ofRefusals are the headers that problems of a status have.
var ofRefusals = map[int][]string{401: {headerChallenge}, 409: {headerRetryAfter}, 503: {headerRetryAfter},
	429: {headerRetryAfter, headerRateLimit, headerRatePolicy}}

// headerOf is a header of many answers.
func headerOf(name string) Header {
	all := append(AnswerHeaders(), ofRates...)
	return all[slices.IndexFunc(all, func(h Header) bool { return h.Name == name })]
}

func (d *describer) header(h Header) contract.Ref {
	if _, known := d.doc.Components.Headers[h.Name]; !known {
		d.doc.Components.Headers[h.Name] = contract.Header{Description: linked(h.Doc), Schema: &jsonschema.Schema{Type: "string"}}
	}
	return contract.Ref{To: atHeaders + h.Name}
}

// response makes a response a component, once for all that say the same: most routes are refused alike.
func (d *describer) response(status int, r *contract.Response) contract.Ref {
	text, err := json.Marshal(r, json.Deterministic(true))
	if err != nil {
		panic("api: " + err.Error())
	}
	name := d.responses[string(text)]
	if name == "" {
		for n := 1; name == ""; n++ {
			if _, taken := d.doc.Components.Responses[numbered(status, n)]; !taken {
				name = numbered(status, n)
			}
		}
		d.responses[string(text)], d.doc.Components.Responses[name] = name, *r
	}
	return contract.Ref{To: atResponses + name}
}

func numbered(status, n int) string { return strconv.Itoa(status) + "-" + strconv.Itoa(n) }

var statusTexts = map[int]string{101: "the connection is a WebSocket from now on", 200: "done, or found", 201: "created",
	202: "accepted; its end comes later", 204: "done; there is nothing to say", 304: "the caller has it already"}

func statusText(status int) string { return statusTexts[status] }
