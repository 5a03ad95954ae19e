package api_test

import (
	"bytes"
	"context"
	stdjson "encoding/json"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/workflow"
)

// contracts are the checkers of documents, by the workflows that are in these: most servers of the tests have the same.
var contracts sync.Map

// contractOf is the checker of the document with some workflows. Other than the one that is served, it allows answers no
// member that it does not know.
func contractOf(t testing.TB, workflows []*workflow.Workflow) *contract {
	t.Helper()
	var names []string
	for _, w := range workflows {
		names = append(names, w.Name+" "+w.Hash) // of all that the document says of it
	}
	build := sync.OnceValues(func() (*contract, error) {
		document, err := api.OpenAPI(workflows)
		if err != nil {
			return nil, err
		}
		return newContract(closed(document))
	})
	known, _ := contracts.LoadOrStore(strings.Join(names, "\n"), build)
	checker, err := known.(func() (*contract, error))()
	require.NoError(t, err)
	return checker
}

// closed is a document whose named schemas allow no other members.
func closed(document []byte) []byte {
	var all map[string]any
	if err := json.Unmarshal(document, &all); err != nil {
		panic(err)
	}
	for _, s := range all["components"].(map[string]any)["schemas"].(map[string]any) {
		closeSchema(s)
	}
	out, err := json.Marshal(all, json.Deterministic(true))
	if err != nil {
		panic(err)
	}
	return out
}

func closeSchema(schema any) {
	s, is := schema.(map[string]any)
	if !is {
		return
	}
	if s["description"] == "any JSON" { // null is too, which one of the validators has to be told
		s["type"] = []string{"null", "boolean", "number", "string", "array", "object"}
	}
	properties, _ := s["properties"].(map[string]any)
	if _, said := s["additionalProperties"]; !said && properties != nil {
		s["additionalProperties"] = false
	}
	for _, p := range properties {
		closeSchema(p)
	}
	closeSchema(s["items"])
}

// asDocumented holds an answer of a route against the OpenAPI document, and its request where it is served; and an event
// stream against the AsyncAPI document.
func asDocumented(t testing.TB, contract *contract, route *api.Route, r *http.Request, sent *sentBody, seen *seenWriter) {
	h := seen.Header()
	x := &exchange{pattern: r.Pattern, request: r, sent: sent.start.Bytes(), status: seen.status, header: h,
		body: seen.start.Bytes()}
	if t.Name() != nameOfFuzz { // which goes where chance leads it
		walked.add(x)
	}
	switch media, _, _ := mime.ParseMediaType(h.Get("Content-Type")); {
	case bytes.Contains(x.body, []byte(atNoAddress)) || seen.cut || r.Method == http.MethodHead || seen.hijacked:
	case media == "text/event-stream":
		eventsAsDocumented(t, r, x.body)
	default:
		assert.NoErrorf(t, contract.checkAnswer(x),
			"%s %s: %d %.600s is not as the OpenAPI document says", r.Method, r.URL, seen.status, x.body)
	}
	if seen.status < 400 && !sent.cut && !seen.hijacked && !refusedInPart(x) {
		x.request = plainly(route, x)
		err := contract.checkRequest(x)
		if err != nil { // a member that is null is one that is left out
			x.sent = withoutNulls(x.sent)
			err = contract.checkRequest(x)
		}
		assert.NoErrorf(t, err,
			"%s %s %.600s was served with %d, and is not as the OpenAPI document says", r.Method, r.URL, x.sent, seen.status)
	}
}

// withoutNulls is JSON without the members that are null.
func withoutNulls(text []byte) []byte {
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		return text
	}
	var clean func(v any)
	clean = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, item := range v {
				clean(item)
			}
		case map[string]any:
			maps.DeleteFunc(v, func(_ string, member any) bool { return member == nil })
			for _, member := range v {
				clean(member)
			}
		}
	}
	clean(v)
	out, err := json.Marshal(v)
	if err != nil {
		return text
	}
	return out
}

// refusedInPart reports whether an item of a bulk request was refused, so that it may be anything; or may lack a key, as in a
// dry run.
func refusedInPart(x *exchange) bool {
	if !strings.HasSuffix(x.pattern, " /v1/commands") {
		return false
	}
	var results []wire.BulkResult
	err := json.Unmarshal(x.body, &results)
	return err != nil || x.request.URL.Query().Get("dry_run") == "true" ||
		slices.ContainsFunc(results, func(r wire.BulkResult) bool { return r.Status >= 400 })
}

// plainly is a request as one would send it who goes by the document alone. What is taken besides is in the protocol, and
// undone here: a parameter that is given without a value, JSON that is called a form, a type of no body, a dry run without a key.
func plainly(route *api.Route, x *exchange) *http.Request {
	r := x.request.Clone(context.Background())
	query := r.URL.Query()
	for name, values := range query {
		if route.EmptyIsNone && len(values) == 1 && values[0] == "" {
			delete(query, name)
		}
	}
	r.URL.RawQuery = query.Encode()
	if len(x.sent) == 0 && (route.Body == nil || route.Body.Optional) {
		r.Header.Del("Content-Type")
	} else if route.Body != nil && route.Body.Media == nil {
		r.Header.Set("Content-Type", "application/octet-stream")
	} else if route.Body != nil && route.Body.Optional && r.Header.Get("Content-Type") == "application/x-www-form-urlencoded" {
		r.Header.Set("Content-Type", "application/json")
	}
	if query.Get("dry_run") == "true" && r.Header.Get("Idempotency-Key") == "" {
		r.Header.Set("Idempotency-Key", "none")
	}
	return r
}

// eventsAsDocumented holds each server-sent event that is whole against the AsyncAPI document.
func eventsAsDocumented(t testing.TB, r *http.Request, text []byte) {
	channel := "events"
	if strings.HasPrefix(r.URL.Path, "/v1/commands/") {
		channel = "command"
	}
	blocks := strings.Split(string(text), "\n\n")
	for _, block := range blocks[:len(blocks)-1] {
		event, data := "message", []string{}
		for line := range strings.SplitSeq(block, "\n") {
			if name, is := strings.CutPrefix(line, "event: "); is {
				event = name
			}
			if part, is := strings.CutPrefix(line, "data: "); is {
				data = append(data, part)
			}
		}
		if len(data) == 0 {
			continue // a comment
		}
		assert.NoErrorf(t, toldAs(channel+"."+event, []byte(strings.Join(data, "\n"))),
			"the AsyncAPI document does not allow %s", block)
	}
}

// documentedMessages are the schemas of the messages of the AsyncAPI document, by the names of the messages.
var documentedMessages = sync.OnceValue(func() map[string]*jsonschema.Resolved {
	document, err := api.AsyncAPI()
	if err != nil {
		panic(err)
	}
	var d struct {
		Components struct {
			Schemas  map[string]*jsonschema.Schema
			Messages map[string]struct{ Payload *jsonschema.Schema }
		}
	}
	text := bytes.ReplaceAll(closed(document), []byte("#/components/schemas/"), []byte("#/$defs/"))
	if err := stdjson.Unmarshal(text, &d); err != nil {
		panic(err)
	}
	all := map[string]*jsonschema.Resolved{}
	for name, m := range d.Components.Messages {
		root := &jsonschema.Schema{Defs: map[string]*jsonschema.Schema{}, Ref: m.Payload.Ref}
		for name, s := range d.Components.Schemas {
			root.Defs[name] = s.CloneSchemas()
		}
		if all[name], err = root.Resolve(nil); err != nil {
			panic(fmt.Sprintf("%s: %v", name, err))
		}
	}
	return all
})

// toldAs says why a message is not what the document says of it.
func toldAs(name string, text []byte) error {
	schema := documentedMessages()[name]
	if schema == nil {
		return fmt.Errorf("there is no message %s", name)
	}
	var message any
	if err := stdjson.Unmarshal(text, &message); err != nil {
		return err
	}
	return schema.Validate(message)
}

// The comparison with the documents can fail.
func TestContractRejectsUndocumentedAnswers(t *testing.T) {
	for name, text := range map[string]string{
		"stream.caught_up": `{"op":"caught_up","id":"a"}`, "stream.subscribed": `{"op":"subscribed","id":"a","after":1,"more":true}`,
		"stream.error": `{"op":"error","id":"a","code":"none","detail":"x"}`, "stream.other": `{}`, "events.message": `{"specversion":"1.0"}`,
	} {
		assert.Errorf(t, toldAs(name, []byte(text)), "%s may be %s", name, text)
	}
	contract := contractOf(t, nil)
	request := httptest.NewRequest(http.MethodGet, "/healthz", nil)
	answer := func(status int, media, body string) error {
		return contract.checkAnswer(&exchange{pattern: "GET /healthz", request: request, status: status,
			header: http.Header{"Content-Type": {media}}, body: []byte(body)})
	}
	assert.NoError(t, answer(200, "application/json", `{"status":"ok"}`))
	assert.Error(t, answer(418, "application/json", `{}`))
	assert.Error(t, answer(200, "text/plain", `{"status":"ok"}`))
	assert.Error(t, answer(500, "application/problem+json", `{"type":"x","title":"x","status":500,"code":"not_found","detail":"x"}`))
	for _, body := range []string{`{}`, `{"status":7}`, `{"status":"ok","more":1}`, `[]`} {
		assert.Error(t, answer(200, "application/json", body), body)
	}
}

func TestContractRejectsUndocumentedRequests(t *testing.T) {
	w, err := parcel.Build()
	require.NoError(t, err)
	contract := contractOf(t, []*workflow.Workflow{w})
	for text, valid := range map[string]bool{
		`POST /v1/workflows/parcel/pack {"to":"Wien"}`: true, `POST /v1/workflows/parcel/pack {"to":7}`: false,
		`POST /v1/workflows/parcel/pack {"to":"Wien","more":1}`: false, `POST /v1/workflows/parcel/pack?dry_run=maybe {"to":"Wien"}`: false,
		"GET /v1/instances?limit=5": true, "GET /v1/instances?limit=0": false, "GET /v1/instances?order=size": false,
	} {
		method, rest, _ := strings.Cut(text, " ")
		path, body, _ := strings.Cut(rest, " ")
		request, pattern := httptest.NewRequest(method, path, nil), "GET /v1/instances"
		if method == http.MethodPost {
			pattern = "POST /v1/workflows/{workflow}/{transition}"
			request.Header = http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": {"k"}}
		}
		err = contract.checkRequest(&exchange{pattern: pattern, request: request, sent: []byte(body)})
		assert.Equalf(t, valid, err == nil, "%s: %v", text, err)
	}
}

// The AsyncAPI document has the messages that clients send.
func TestAsyncAPI_ClientMessages(t *testing.T) {
	for op, text := range messages {
		assert.NoError(t, toldAs("stream."+op, []byte(text)), text)
	}
	for _, r := range api.Routes() {
		for _, o := range r.Operations {
			assert.Contains(t, messages, o.Name)
		}
	}
}
