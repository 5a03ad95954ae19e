package api

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api/internal/contract"
	"github.com/pawlhq/pawl/api/internal/stream"
	"github.com/pawlhq/pawl/workflow"
)

type letter struct{}

type written struct {
	Text string `json:"text" validate:"required,max=10"`
}

type signed struct {
	By string `json:"by,omitempty"`
}

// letters is a workflow with a creation and a transition.
func letters(t *testing.T, name string, version int) *workflow.Workflow {
	t.Helper()
	w, err := workflow.Define(name, version,
		workflow.Start("write", "written", func(*workflow.Call, *letter, written) error { return nil }),
		workflow.On("sign", workflow.From("written"), "signed", func(*workflow.Call, *letter, signed) error { return nil }),
		workflow.On("sign", workflow.From("signed"), "sealed", func(*workflow.Call, *letter, signed) error { return nil }),
		workflow.On("lose", workflow.From("written"), "lost", func(*workflow.Call, *letter, signed) error { return nil }).Internal(),
		workflow.Auto("give-up", workflow.From("lost"), "sealed", func(*workflow.Call, *letter) error { return nil }),
	).Final("sealed").Build()
	require.NoError(t, err)
	return w
}

func documentWith(t *testing.T, workflows ...*workflow.Workflow) (text string, d contract.Document) {
	t.Helper()
	body, err := openAPI(publicURL{}, Routes(), workflows, true)
	if err == nil {
		err = json.Unmarshal(body, &d)
	}
	require.NoError(t, err)
	return string(body), d
}

// operationsIn are the operations of a document, "GET /v1/me".
func operationsIn(d *contract.Document) (all []string) {
	for path, item := range d.Paths {
		for method := range item {
			all = append(all, strings.ToUpper(method)+" "+path)
		}
	}
	slices.Sort(all)
	return all
}

func TestOpenAPI_HasEveryRoute(t *testing.T) {
	_, d := documentWith(t)
	var want []string
	for _, r := range Routes() {
		want = append(want, r.Method+" "+strings.ReplaceAll(r.Path, "...", ""))
		o := d.Paths[addressOf(r.Path)][strings.ToLower(r.Method)]
		require.NotNil(t, o, r.Path)
		for _, a := range r.Answers {
			assert.NotEmptyf(t, o.Responses[strconv.Itoa(a.Status)].To, "%s %s: %d", r.Method, r.Path, a.Status)
		}
		for _, c := range r.Codes {
			to := o.Responses[strconv.Itoa(c.Info().Status)].To
			assert.Containsf(t, d.Components.Responses[strings.TrimPrefix(to, atResponses)].Description, "`"+string(c)+"`",
				"%s %s: %s", r.Method, r.Path, c)
		}
		own := slices.DeleteFunc(slices.Clone(r.Params), func(p Param) bool { return p.family() })
		assert.Truef(t, len(o.Parameters) == len(own) && (o.Body != nil) == (r.Body != nil) && o.Grant == string(r.Grant) &&
			o.Security != nil && (len(o.Security) == 0) == (r.Grant == Public), "%s %s: %+v", r.Method, r.Path, o)
	}
	slices.Sort(want)
	assert.Equal(t, want, operationsIn(&d))
	for _, c := range workflow.Codes {
		assert.Contains(t, d.Components.Schemas, problemName(c.Code))
	}
}

// The document declares the actor's header if the actor is trusted; otherwise only as a parameter of queries about other actors.
func TestOpenAPI_CallerHeaders(t *testing.T) {
	for _, open := range []bool{true, false} {
		body, err := openAPI(publicURL{}, Routes(), nil, open)
		require.NoError(t, err)
		var d contract.Document
		require.NoError(t, json.Unmarshal(body, &d))
		for _, r := range Routes() {
			var got, want []string
			for _, p := range parametersOf(&d, d.Paths[addressOf(r.Path)][strings.ToLower(r.Method)]) {
				if p.In == "header" && slices.Contains(ofCallers, p.Name) {
					got = append(got, p.Name)
				}
			}
			switch {
			case r.Grant == Public:
			case open:
				want = ofCallers
			case r.ActsAs:
				want = []string{headerActor}
			}
			assert.Truef(t, slices.Equal(got, want),
				"%s %s, without authentication: %t, has %q, want %q", r.Method, r.Path, open, got, want)
		}
	}
}

// Each attribute that a workflow declares is a parameter of its own, of lists and of events, and so is a range of one, of lists.
func TestOpenAPI_Attributes(t *testing.T) {
	city := func(name string) *workflow.Workflow {
		w, err := workflow.Define(name, 1,
			workflow.Start("write", "written", func(*workflow.Call, *letter, written) error { return nil }),
		).Final("written").Attr("city", func(letter) string { return "" }).Attr(name, func(letter) string { return "" }).Build()
		require.NoError(t, err)
		return w
	}
	_, d := documentWith(t, city("parcel"), city("card"))
	for _, path := range []string{"/v1/instances", "/v1/events", "/v1/counts"} {
		of := map[string]string{}
		for _, p := range parametersOf(&d, d.Paths[path]["get"]) {
			if strings.HasPrefix(p.Name, attributes.Name) {
				of[p.Name] = p.Description
				assert.Truef(t, p.In == "query" && !p.Required && p.Schema.Type == "string" && *p.Schema.MaxLength == maxText,
					"%s: %+v", path, p)
			}
		}
		want := map[string]string{"attr.city": "an attribute of `parcel`, of `card`", "attr.parcel": "an attribute of `parcel`",
			"attr.card": "an attribute of `card`"}
		if path == "/v1/instances" {
			for name, doc := range maps.Clone(want) {
				want[name+suffixFrom], want[name+suffixBefore], want[name+suffixPrefix] = doc, doc, doc
			}
		}
		assert.Truef(t, maps.Equal(of, want), "%s: %q", path, of)
	}
}

func parametersOf(d *contract.Document, o *contract.Operation) (all []contract.Parameter) {
	for _, ref := range o.Parameters {
		all = append(all, d.Components.Parameters[strings.TrimPrefix(ref.To, atParams)])
	}
	return all
}

var reference = regexp.MustCompile(`"\$ref":"#/components/(\w+)/([^"]+)"`)

// References resolve, and operations and components have names of their own.
func TestOpenAPI_Names(t *testing.T) {
	text, d := documentWith(t, letters(t, "letter", 1), letters(t, "postcard", 1))
	c := d.Components
	all := map[string][]string{"schemas": slices.Collect(maps.Keys(c.Schemas)), "responses": slices.Collect(maps.Keys(c.Responses)),
		"parameters": slices.Collect(maps.Keys(c.Parameters)), "headers": slices.Collect(maps.Keys(c.Headers))}
	for _, ref := range reference.FindAllStringSubmatch(text, -1) {
		assert.Contains(t, all[ref[1]], ref[2])
	}
	components := names{}
	for _, kind := range all {
		for _, name := range kind {
			assert.Regexp(t, `^[A-Za-z][A-Za-z0-9_]*$`, name)
			assert.Equal(t, name, components.unique(name), "two components are named")
		}
	}
	ids := map[string]bool{}
	for _, item := range d.Paths {
		for _, o := range item {
			assert.Falsef(t, ids[o.ID], "two operations are named %s", o.ID)
			ids[o.ID] = true
		}
	}
	assert.NotContains(t, text, "](#", "a link leads to a heading of another page")
}

// Each transition is an operation at each of its addresses, with its payload once.
func TestOpenAPI_Workflow(t *testing.T) {
	_, d := documentWith(t)
	before := operationsIn(&d)
	_, d = documentWith(t, letters(t, "letter", 1))
	more := slices.DeleteFunc(operationsIn(&d), func(o string) bool { return slices.Contains(before, o) })
	assert.Equal(t, []string{"POST /v1/instances/{id}/sign", "POST /v1/workflows/letter/keys/{business_key}/sign",
		"POST /v1/workflows/letter/write"}, more)
	assert.True(t, d.Paths["/v1/workflows/letter/write"]["post"].Body.Required)
	_, d = documentWith(t, letters(t, "letter", 1), letters(t, "postcard", 1))
	for path, want := range map[string]string{
		"/v1/workflows/letter/write":                    `{"$ref":"#/components/schemas/Letter_Write"}`,
		"/v1/workflows/letter/keys/{business_key}/sign": `{"$ref":"#/components/schemas/Letter_Sign"}`,
		"/v1/instances/{id}/sign":                       `{"anyOf":[{"$ref":"#/components/schemas/Letter_Sign"},{"$ref":"#/components/schemas/Postcard_Sign"}]}`,
	} {
		text, err := json.Marshal(d.Paths[path]["post"].Body.Content[mediaJSON].Schema, json.Deterministic(true))
		assert.Truef(t, err == nil && string(text) == want, "%s takes %s, %v", path, text, err)
	}
}

// Two names that generators write alike are told apart.
func TestOpenAPI_ComponentNamesDiffer(t *testing.T) {
	for _, name := range []string{"bulk", "2-bulk"} {
		steps := []workflow.Part[letter]{}
		for _, step := range []string{"command", "com-mand", "com_mand"} {
			steps = append(steps, workflow.Start(step, "written", func(*workflow.Call, *letter, written) error { return nil }))
		}
		w, err := workflow.Define(name, 1, steps...).Final("written").Build()
		require.NoError(t, err)
		_, d := documentWith(t, w)
		refs := map[string]bool{}
		for _, step := range []string{"command", "com-mand", "com_mand"} {
			media := d.Paths["/v1/workflows/"+name+"/"+step]["post"].Body.Content[mediaJSON]
			ref := media.Schema.(map[string]any)["$ref"].(string)
			assert.Truef(t, !refs[ref] && ref != atSchemas+"BulkCommand", "%s of %s shares %s", step, name, ref)
			refs[ref] = true
		}
	}
}

// Each union of problems is told apart by code, and each of its codes leads to its schema.
func TestOpenAPI_ProblemUnionsAreDiscriminated(t *testing.T) {
	_, d := documentWith(t)
	unions := 0
	for name, r := range d.Components.Responses {
		media, ok := r.Content[mediaProblem]
		if !ok {
			continue
		}
		schema := media.Schema.(map[string]any)
		if schema["$ref"] != nil {
			continue
		}
		unions++
		all, _ := schema["oneOf"].([]any)
		discriminator, _ := schema["discriminator"].(map[string]any)
		mapping, _ := discriminator["mapping"].(map[string]any)
		assert.Truef(t, discriminator["propertyName"] == "code" && len(all) >= 2 && len(mapping) == len(all), "%s: %v", name, schema)
		for code, ref := range mapping {
			assert.Falsef(t, ref != atSchemas+problemName(workflow.Code(code)) || !slices.ContainsFunc(all, func(s any) bool { return s.(map[string]any)["$ref"] == ref }), "%s: %s leads to %s", name, code, ref)
		}
	}
	assert.NotEqual(t, 0, unions, "there are no unions of problems")
}

// An integer that is too large for what reads it is not allowed.
func TestOpenAPI_IntegersAreBounded(t *testing.T) {
	type counted struct {
		Signed   int64  `json:"signed"`
		Unsigned uint64 `json:"unsigned"`
	}
	w, err := workflow.Define("counts", 1,
		workflow.Start("count", "counted", func(*workflow.Call, *letter, counted) error { return nil })).Final("counted").Build()
	require.NoError(t, err)
	document, d := documentWith(t, w)
	bounded := func(what string, s contract.Schema) {
		assert.Falsef(t, s.Type == "integer" && (s.Maximum == nil && s.ExclusiveMaximum == nil || s.Minimum == nil && s.ExclusiveMinimum == nil), "%s is not bounded: %+v", what, s)
	}
	for name, p := range d.Components.Parameters {
		bounded(name, p.Schema)
	}
	for name, component := range d.Components.Schemas {
		text, err := json.Marshal(component)
		var s jsonschema.Schema
		if err == nil {
			err = json.Unmarshal(text, &s)
		}
		require.Truef(t, err == nil && (name != "Counts_Count" || len(s.Properties) == 2), "%v %v", err, string(text))
		for member, p := range s.Properties {
			bounded(name+"."+member, p)
		}
	}
	for _, limit := range []string{`"maximum":9223372036854775807`, `"minimum":-9223372036854775808`, `"maximum":18446744073709551615`} {
		assert.Contains(t, document, limit, "the document has no")
	}
}

var pointer = regexp.MustCompile(`"\$ref":"#([^"]+)"`)

// The document has all requests and messages, and its references resolve.
func TestAsyncAPI_References(t *testing.T) {
	document, err := asyncAPI(publicURL{}, []*workflow.Workflow{letters(t, "letter", 1)})
	require.NoError(t, err)
	var all any
	require.NoError(t, json.Unmarshal(document, &all))
	at := func(p string) any {
		value := all
		for token := range jsontext.Pointer(p).Tokens() {
			object, _ := value.(map[string]any)
			value = object[token]
		}
		return value
	}
	for _, ref := range pointer.FindAllStringSubmatch(string(document), -1) {
		assert.NotNilf(t, at(ref[1]), "%s leads nowhere", ref[0])
	}
	for _, op := range stream.Operations {
		assert.Truef(t, at("/components/messages/stream."+op) != nil && at("/channels/stream/messages/"+op) != nil,
			"there is no message %s", op)
	}
	if asked, _ := at("/operations/ask/messages").([]any); len(asked) != len(stream.Operations) || at("/operations/ask/action") != "receive" {
		t.Errorf("clients send %v", asked)
	}
	assert.Contains(t, string(document), `"letter.sign"`, "the types of the events are not named")
}

// catalogue is many workflows with 20 transitions and 5 attributes each.
func catalogue(t testing.TB, n int) (all []*workflow.Workflow) {
	t.Helper()
	for i := range n {
		parts := []workflow.Part[letter]{workflow.Start("write", "s0", func(*workflow.Call, *letter, written) error { return nil })}
		for k := range 19 {
			parts = append(parts, workflow.On(fmt.Sprintf("step-%d-%d", i, k), workflow.From(workflow.State(fmt.Sprintf("s%d", k))),
				workflow.State(fmt.Sprintf("s%d", k+1)), func(*workflow.Call, *letter, signed) error { return nil }))
		}
		d := workflow.Define(fmt.Sprintf("flow-%d", i), 1, parts...).Final("s19")
		for k := range 5 {
			d.Attr(fmt.Sprintf("a-%d-%d", i, k), func(letter) string { return "" })
		}
		w, err := d.Build()
		require.NoError(t, err)
		all = append(all, w)
	}
	return all
}

// A transition adds references to what the document has already, and little else.
func TestOpenAPI_SizeOf200Workflows(t *testing.T) {
	_, one := documentWith(t, catalogue(t, 1)...)
	text, d := documentWith(t, catalogue(t, 200)...)
	assert.Len(t, d.Components.Responses, len(one.Components.Responses), "one workflow has responses, 200 have")
	operations := len(operationsIn(&d))
	size := len(text) / operations
	assert.Truef(t, operations >= 200*39 && size <= 2300, "%d operations have %d bytes each", operations, size)
	packed, err := documentOf([]byte(text))
	assert.Truef(t, err == nil && len(packed.packed) <= 1<<20 && packed.size == len(text),
		"%d bytes are %d as gzip, %v", packed.size, len(packed.packed), err)
}

func BenchmarkOpenAPI_200Workflows(b *testing.B) {
	all := catalogue(b, 200)
	for b.Loop() {
		text, err := openAPI(publicURL{}, Routes(), all, true)
		require.NoError(b, err)
		b.ReportMetric(float64(len(text)), "bytes")
	}
}
