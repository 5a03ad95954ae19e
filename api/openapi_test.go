package api

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/pawlhq/pawl/api/internal/contract"
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
	).Final("signed").Build()
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func documentWith(t *testing.T, workflows ...*workflow.Workflow) (text string, d contract.Document) {
	t.Helper()
	body, err := openAPI(publicURL{}, Routes(), workflows, true)
	if err == nil {
		err = json.Unmarshal(body, &d)
	}
	if err != nil {
		t.Fatal(err)
	}
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

func TestEveryRouteIsInTheDocumentAndNothingElse(t *testing.T) {
	var want []string
	for _, r := range Routes() {
		want = append(want, r.Method+" "+strings.ReplaceAll(r.Path, "...", ""))
	}
	_, d := documentWith(t)
	slices.Sort(want)
	if got := operationsIn(&d); !slices.Equal(got, want) {
		t.Errorf("the document has %q, the table %q", got, want)
	}
	for _, r := range Routes() {
		o := d.Paths[addressOf(r.Path)][strings.ToLower(r.Method)]
		if o == nil {
			continue
		}
		var statuses []string
		for _, a := range r.Answers {
			statuses = append(statuses, numberedStatus(a.Status))
		}
		for _, c := range r.Codes {
			statuses = append(statuses, numberedStatus(c.Info().Status))
			to := o.Responses[numberedStatus(c.Info().Status)].To
			if response := d.Components.Responses[strings.TrimPrefix(to, atResponses)]; !strings.Contains(response.Description, "`"+string(c)+"`") {
				t.Errorf("%s %s does not say that it is refused with %s", r.Method, r.Path, c)
			}
		}
		for _, status := range statuses {
			if o.Responses[status].To == "" {
				t.Errorf("%s %s does not say that it is answered with %s", r.Method, r.Path, status)
			}
		}
		own := slices.DeleteFunc(slices.Clone(r.Params), func(p Param) bool { return p.family() })
		if len(o.Parameters) != len(own) || (o.Body != nil) != (r.Body != nil) || o.Grant != string(r.Grant) ||
			(o.Security == nil) != (r.Grant == Public) {
			t.Errorf("%s %s: %+v", r.Method, r.Path, o)
		}
	}
	for _, c := range workflow.Codes {
		if d.Components.Schemas[problemName(c.Code)] == nil {
			t.Errorf("there is no problem %s", c.Code)
		}
	}
}

// What a caller names himself by is in the document where he is believed; elsewhere the actor, of what may be done as another.
func TestTheDocumentSaysWhoMayNameHimself(t *testing.T) {
	for _, open := range []bool{true, false} {
		body, err := openAPI(publicURL{}, Routes(), nil, open)
		if err != nil {
			t.Fatal(err)
		}
		var d contract.Document
		if err := json.Unmarshal(body, &d); err != nil {
			t.Fatal(err)
		}
		for _, r := range Routes() {
			var got, want []string
			for _, p := range d.Paths[addressOf(r.Path)][strings.ToLower(r.Method)].Parameters {
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
			if !slices.Equal(got, want) {
				t.Errorf("%s %s, without authentication: %t, has %q, want %q", r.Method, r.Path, open, got, want)
			}
		}
	}
}

// Each attribute that a workflow declares is a parameter of its own, of lists and of events, and so is a range of one, of lists.
func TestAttributesAreInTheDocument(t *testing.T) {
	city := func(name string) *workflow.Workflow {
		w, err := workflow.Define(name, 1,
			workflow.Start("write", "written", func(*workflow.Call, *letter, written) error { return nil }),
		).Final("written").Attr("city", func(letter) string { return "" }).Attr(name, func(letter) string { return "" }).Build()
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	_, d := documentWith(t, city("parcel"), city("card"))
	for _, path := range []string{"/v1/instances", "/v1/events", "/v1/counts"} {
		of := map[string]string{}
		for _, p := range d.Paths[path]["get"].Parameters {
			if strings.HasPrefix(p.Name, attributes.Name) {
				of[p.Name] = p.Description
				if p.In != "query" || p.Required || p.Schema.Type != "string" || *p.Schema.MaxLength != maxText {
					t.Errorf("%s: %+v", path, p)
				}
			}
		}
		want := map[string]string{"attr.city": "an attribute of `parcel`, of `card`", "attr.parcel": "an attribute of `parcel`",
			"attr.card": "an attribute of `card`"}
		if path == "/v1/instances" {
			for name, doc := range maps.Clone(want) {
				want[name+suffixFrom], want[name+suffixBefore], want[name+suffixPrefix] = doc, doc, doc
			}
		}
		if !maps.Equal(of, want) {
			t.Errorf("%s: %q", path, of)
		}
	}
}

func numberedStatus(status int) string { return strings.TrimSuffix(numbered(status, 0), "-0") }

var reference = regexp.MustCompile(`"\$ref":"#/components/(\w+)/([^"]+)"`)

// A reference leads somewhere, and an operation has a name of its own.
func TestTheDocumentIsWhole(t *testing.T) {
	text, d := documentWith(t, letters(t, "letter", 1), letters(t, "postcard", 1))
	for _, ref := range reference.FindAllStringSubmatch(text, -1) {
		_, schema := d.Components.Schemas[ref[2]]
		_, response := d.Components.Responses[ref[2]]
		_, header := d.Components.Headers[ref[2]]
		if found := map[string]bool{"schemas": schema, "responses": response, "headers": header}[ref[1]]; !found {
			t.Errorf("%s leads nowhere", ref[0])
		}
	}
	ids := map[string]bool{}
	for _, item := range d.Paths {
		for _, o := range item {
			if ids[o.ID] {
				t.Errorf("two operations are named %s", o.ID)
			}
			ids[o.ID] = true
		}
	}
	if strings.Contains(text, "](#") {
		t.Error("a link leads to a heading of another page")
	}
}

// Each transition is an operation at each of its addresses, with its payload.
func TestAWorkflowIsInTheDocument(t *testing.T) {
	none, d := documentWith(t)
	before := operationsIn(&d)
	one, d := documentWith(t, letters(t, "letter", 1))
	more := slices.DeleteFunc(operationsIn(&d), func(o string) bool { return slices.Contains(before, o) })
	want := []string{"POST /v1/instances/{id}/sign", "POST /v1/workflows/letter/keys/{business_key}/sign", "POST /v1/workflows/letter/write"}
	if !slices.Equal(more, want) {
		t.Errorf("a workflow adds %q", more)
	}
	for path, payload := range map[string]string{"/v1/workflows/letter/write": "letter.write", "/v1/instances/{id}/sign": "letter.sign"} {
		o := d.Paths[path]["post"]
		text, err := json.Marshal(o.Body)
		if err != nil || !strings.Contains(string(text), `"`+atSchemas+payload+`"`) || o.Body.Required != (payload == "letter.write") {
			t.Errorf("%s takes %s, %v", path, text, err)
		}
	}
	two, d := documentWith(t, letters(t, "letter", 1), letters(t, "postcard", 1))
	text, err := json.Marshal(d.Paths["/v1/instances/{id}/sign"]["post"].Body)
	if err != nil || !strings.Contains(string(text), "letter.sign") || !strings.Contains(string(text), "postcard.sign") {
		t.Errorf("a transition of two workflows takes %s, %v", text, err)
	}
	newer, _ := documentWith(t, letters(t, "letter", 2))
	again, _ := documentWith(t, letters(t, "letter", 1))
	tags := map[string]bool{}
	for _, text := range []string{none, one, two, newer} {
		tags[documentOf([]byte(text)).tag] = true
	}
	if len(tags) != 4 || again != one {
		t.Errorf("%d tags of four documents", len(tags))
	}
}
