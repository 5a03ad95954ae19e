package api_test

import (
	"bytes"
	"context"
	stdjson "encoding/json"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/api/internal/contracttest"
	"github.com/pawlhq/pawl/workflow"
)

// contracts are the checkers of documents, by the workflows that are in these: most servers of the tests have the same.
var contracts sync.Map

// contractOf is the checker of the document with some workflows. Other than the one that is served, it allows answers no
// member that it does not know.
func contractOf(t testing.TB, workflows []*workflow.Workflow) *contracttest.Checker {
	t.Helper()
	var names []string
	for _, w := range workflows {
		names = append(names, w.Name+" "+w.Hash) // of all that the document says of it
	}
	build := sync.OnceValues(func() (*contracttest.Checker, error) {
		document, err := api.OpenAPI(workflows)
		if err != nil {
			return nil, err
		}
		return contracttest.New(closed(document))
	})
	known, _ := contracts.LoadOrStore(strings.Join(names, "\n"), build)
	checker, err := known.(func() (*contracttest.Checker, error))()
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
func asDocumented(t testing.TB, contract *contracttest.Checker, route *api.Route, r *http.Request, sent *sentBody, seen *seenWriter) {
	h := seen.Header()
	x := &contracttest.Exchange{Pattern: r.Pattern, Request: r, Sent: sent.start.Bytes(), Status: seen.status, Header: h,
		Body: seen.start.Bytes()}
	if t.Name() != nameOfFuzz { // which goes where chance leads it
		walked.add(x)
	}
	switch media, _, _ := mime.ParseMediaType(h.Get("Content-Type")); {
	case bytes.Contains(x.Body, []byte(atNoAddress)) || seen.cut || r.Method == http.MethodHead || seen.hijacked:
	case media == "text/event-stream":
		eventsAsDocumented(t, r, x.Body)
	default:
		assert.NoErrorf(t, contract.Answer(x),
			"%s %s: %d %.600s is not as the OpenAPI document says", r.Method, r.URL, seen.status, x.Body)
	}
	if seen.status < 400 && !sent.cut && !seen.hijacked && !refusedInPart(x) {
		x.Request = plainly(route, x)
		err := contract.Request(x)
		if err != nil { // a member that is null is one that is left out
			x.Sent = withoutNulls(x.Sent)
			err = contract.Request(x)
		}
		assert.NoErrorf(t, err,
			"%s %s %.600s was served with %d, and is not as the OpenAPI document says", r.Method, r.URL, x.Sent, seen.status)
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
func refusedInPart(x *contracttest.Exchange) bool {
	if !strings.HasSuffix(x.Pattern, " /v1/commands") {
		return false
	}
	var results []api.BulkResult
	err := json.Unmarshal(x.Body, &results)
	return err != nil || x.Request.URL.Query().Get("dry_run") == "true" ||
		slices.ContainsFunc(results, func(r api.BulkResult) bool { return r.Status >= 400 })
}

// plainly is a request as one would send it who goes by the document alone. What is taken besides is in the protocol, and
// undone here: a parameter that is given without a value, JSON that is called a form, a type of no body, a dry run without a key.
func plainly(route *api.Route, x *contracttest.Exchange) *http.Request {
	r := x.Request.Clone(context.Background())
	query := r.URL.Query()
	for name, values := range query {
		if route.EmptyIsNone && len(values) == 1 && values[0] == "" {
			delete(query, name)
		}
	}
	r.URL.RawQuery = query.Encode()
	if len(x.Sent) == 0 && (route.Body == nil || route.Body.Optional) {
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

// What the tests of streams see is held against the document; that this can fail is shown here.
func TestFramesThatAreNotDocumentedAreFound(t *testing.T) {
	for name, text := range map[string]string{
		"stream.caught_up": `{"op":"caught_up","id":"a"}`, "stream.subscribed": `{"op":"subscribed","id":"a","after":1,"more":true}`,
		"stream.error": `{"op":"error","id":"a","code":"none","detail":"x"}`, "stream.other": `{}`, "events.message": `{"specversion":"1.0"}`,
	} {
		assert.Errorf(t, toldAs(name, []byte(text)), "%s may be %s", name, text)
	}
	assert.NoError(t, toldAs("stream.caught_up", []byte(`{"op":"caught_up","id":"a","position":7}`)))
}

// Both validators have to be able to complain.
func TestAnswersThatAreNotDocumentedAreFound(t *testing.T) {
	contract := contractOf(t, nil)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/healthz", nil)
	require.NoError(t, err)
	for body, wrong := range map[string]int{`{"status":"ok"}`: 0, `{}`: 2, `{"status":7}`: 2, `{"status":"ok","more":1}`: 2, `[]`: 2} {
		x := &contracttest.Exchange{Pattern: "GET /healthz", Request: request, Status: 200,
			Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(body)}
		assert.Equalf(t, wrong, validatorsThatComplain(contract.Answer(x)), "%s validators complain", body)
	}
	x := &contracttest.Exchange{Pattern: "GET /healthz", Request: request, Status: 418,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(`{}`)}
	assert.Equal(t, 2, validatorsThatComplain(contract.Answer(x)), "a status that is not documented validators complain")
}

// So they have to of requests.
func TestRequestsThatAreNotDocumentedAreFound(t *testing.T) {
	w, err := parcel.Build()
	require.NoError(t, err)
	contract := contractOf(t, []*workflow.Workflow{w})
	for text, wrong := range map[string]int{
		"POST /v1/workflows/parcel/pack {\"to\":\"Wien\"}": 0, "POST /v1/workflows/parcel/pack {\"to\":7}": 2,
		"POST /v1/workflows/parcel/pack {}":                           2,
		"POST /v1/workflows/parcel/pack {\"to\":\"Wien\",\"more\":1}": 2, "POST /v1/workflows/parcel/pack?dry_run=maybe {\"to\":\"Wien\"}": 2,
		"GET /v1/instances?limit=5": 0, "GET /v1/instances?limit=0": 2, "GET /v1/instances?limit=1001": 2, "GET /v1/instances?order=size": 2,
	} {
		method, rest, _ := strings.Cut(text, " ")
		path, body, _ := strings.Cut(rest, " ")
		request, err := http.NewRequestWithContext(t.Context(), method, path, nil)
		require.NoError(t, err)
		pattern := "GET /v1/instances"
		if method == http.MethodPost {
			pattern = "POST /v1/workflows/{workflow}/{transition}"
			request.Header = http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": {"k"}}
		}
		err = contract.Request(&contracttest.Exchange{Pattern: pattern, Request: request, Sent: []byte(body)})
		assert.Equalf(t, wrong, validatorsThatComplain(err), "%s validators complain: %v", text, err)
	}
}

func validatorsThatComplain(err error) (n int) {
	text := fmt.Sprint(err)
	for _, name := range []string{"kin-openapi: ", "libopenapi: "} {
		if strings.Contains(text, name) {
			n++
		}
	}
	return n
}

// What the document says that a client may send on a WebSocket is what is taken.
func TestTheAsyncAPIDocumentHasWhatClientsSend(t *testing.T) {
	document, err := api.AsyncAPI()
	require.NoError(t, err)
	var d struct {
		Operations map[string]struct {
			Action   string
			Messages []map[string]string
		}
		Components struct{ Schemas, Messages map[string]jsontext.Value }
	}
	require.NoError(t, json.Unmarshal(document, &d, json.MatchCaseInsensitiveNames(true)))
	for op, text := range messages {
		assert.NoError(t, toldAs("stream."+op, []byte(text)), text)
	}
	for _, r := range api.Routes() {
		for _, o := range r.Operations {
			assert.NotNilf(t, d.Components.Messages["stream."+o.Name], "there is no message %s", o.Name)
		}
	}
	ask := d.Operations["ask"]
	assert.Truef(t, ask.Action == "receive" && len(ask.Messages) == len(messages), "%+v", ask)
}
