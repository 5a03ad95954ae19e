package api

import (
	"cmp"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/pawlhq/pawl/api/internal/contract"
	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/internal/schemagen"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

const (
	ourModule = "github.com/pawlhq/pawl/"
	docsURL   = "https://github.com/pawlhq/pawl/blob/main/docs/"
	protocol  = docsURL + "protocol.md"

	atSchemas   = "#/components/schemas/"
	atResponses = "#/components/responses/"
	atHeaders   = "#/components/headers/"
	atParams    = "#/components/parameters/"
)

// openAPI describes these routes and workflows as an OpenAPI document: the table of routes, and an operation with its own path for each
// transition of a workflow. open omits credentials.
func openAPI(public publicURL, routes []Route, workflows []*workflow.Workflow, open bool) ([]byte, error) {
	d := &describer{routes: routes, open: open, schemas: newSchemas(), names: names{}, shared: map[string]string{},
		byRoute: map[string]map[string]contract.Ref{}, payloads: map[string]string{},
		parametersOf: map[*Param]contract.Ref{}, doc: contract.Document{
			OpenAPI: contract.Version, Info: infoOf("The HTTP interface of a Pawl service: its addresses, and the transitions of its workflows. " +
				"Streams are described in /asyncapi.json. Explained in " + protocol + "."),
			Servers: []contract.Server{{URL: cmp.Or(public.origin()+public.prefix, "/")}},
			Paths:   map[string]contract.PathItem{},
			Components: contract.Components{Schemas: map[string]any{}, Responses: map[string]contract.Response{},
				Headers: map[string]contract.Header{}, Parameters: map[string]contract.Parameter{}, Security: credentialSchemes},
		}}
	d.problems()
	for _, r := range routes {
		d.route(&r)
	}
	// Members that are JSON to Go.
	d.schemas.Named["Events"].Properties["events"].Items = d.schemas.Answer(reflect.TypeFor[wire.CloudEvent]())
	d.schemas.Named["CommandStatus"].Properties["problem"] = d.schemas.Answer(reflect.TypeFor[transitions.Problem]())
	for name := range d.schemas.Named {
		d.names[plainly(name)] = true
	}
	for _, w := range workflows {
		if err := d.workflow(w); err != nil {
			return nil, err
		}
	}
	d.attributes(workflows)
	for name, s := range d.schemas.Named {
		d.doc.Components.Schemas[name] = s
	}
	return schemagen.Text(&d.doc)
}

func infoOf(what string) contract.Info {
	return contract.Info{Title: "Pawl", Version: "1", Description: what, License: &contract.License{Name: "MIT", Identifier: "MIT"}}
}

func newSchemas() *schemagen.Components {
	var codes []any
	for _, c := range workflow.Codes {
		codes = append(codes, c.Code)
	}
	var statuses []any
	for _, s := range transitions.Statuses {
		statuses = append(statuses, s)
	}
	return schemagen.NewComponents(ourModule, atSchemas, map[reflect.Type]contract.Schema{
		reflect.TypeFor[workflow.Code]():      {Type: "string", Enum: codes},
		reflect.TypeFor[transitions.Status](): {Type: "string", Enum: statuses},
	})
}

// describer fills the document.
type describer struct {
	doc      contract.Document
	routes   []Route
	open     bool
	schemas  *schemagen.Components
	names    names                              // of components
	shared   map[string]string                  // the names of responses and parameters, by their text
	byRoute  map[string]map[string]contract.Ref // the responses of the transitions of a route, by its path
	payloads map[string]string                  // the names of the schemas of payloads, by workflow and transition

	parametersOf map[*Param]contract.Ref // of the rows of the table
}

// problems describes each code as a problem document of its own.
func (d *describer) problems() {
	base := d.schemas.Answer(reflect.TypeFor[transitions.Problem]())
	for _, c := range workflow.Codes {
		of := transitions.ProblemOf(workflow.Errorf(c.Code, ""))
		d.doc.Components.Schemas[problemName(c.Code)] = &jsonschema.Schema{Description: c.Meaning, AllOf: []contract.Schema{base,
			{Type: "object", Required: []string{"code", "status", "type", "title"}, Properties: map[string]contract.Schema{
				"code": constant(c.Code), "status": constant(c.Status), "type": constant(of.Type), "title": constant(c.Meaning),
			}, PropertyOrder: []string{"code", "status", "type", "title"}}}}
	}
}

func problemName(c workflow.Code) string { return "Problem" + pascal(string(c)) }

func constant(v any) contract.Schema { return &jsonschema.Schema{Const: &v} }

// route describes a row of the table at its own address.
func (d *describer) route(r *Route) {
	if !slices.ContainsFunc(d.doc.Tags, func(t contract.Tag) bool { return t.Name == r.Section }) {
		d.doc.Tags = append(d.doc.Tags, contract.Tag{Name: r.Section,
			Description: "[" + r.Section + "](" + docsURL + sections[r.Section] + ")"})
	}
	path := addressOf(r.Path)
	o := d.operation(r, path, strings.Trim(noWord.ReplaceAllString(strings.ToLower(r.Method)+"_"+strings.TrimPrefix(path, v1), "_"), "_"))
	o.Summary, o.Description = link.ReplaceAllString(r.Doc, "$1"), linked(r.Doc)
	o.Body = d.body(r)
	d.put(path, r.Method, o)
}

func (d *describer) put(path, method string, o *contract.Operation) {
	if d.doc.Paths[path] == nil {
		d.doc.Paths[path] = contract.PathItem{}
	}
	d.doc.Paths[path][strings.ToLower(method)] = o
}

// operation is what a route says of an address that is its own, or one of those that it stands for.
func (d *describer) operation(r *Route, path, id string) *contract.Operation {
	o := &contract.Operation{ID: id, Tags: []string{r.Section}, Grant: string(r.Grant), Parameters: d.parameters(r, path),
		Responses: d.byRoute[r.Method+r.Path], Security: []map[string][]string{}}
	if r.Grant != Public {
		o.Security = nil // which credentials are taken; each has to have the grant
		schemes := []string{"jwt", "apiKey", "ticket"}
		if slices.ContainsFunc(r.Answers, func(a Answer) bool { return a.Media == mediaEventStream }) {
			schemes = append(schemes, "ticketCookie")
		}
		for _, name := range schemes {
			grants := []string{string(r.Grant)}
			if r.Grant == AnyCaller {
				grants = []string{}
			}
			o.Security = append(o.Security, map[string][]string{name: grants})
		}
		if d.open {
			o.Security = append(o.Security, map[string][]string{})
		}
	}
	if o.Responses == nil {
		o.Responses = map[string]contract.Ref{}
		d.answers(r, o)
		d.refusals(r, o)
		d.byRoute[r.Method+r.Path] = o.Responses
	}
	return o
}

func (d *describer) body(r *Route) *contract.Body {
	if r.Body == nil {
		return nil
	}
	b := &contract.Body{Required: !r.Body.Optional, Content: map[string]contract.Media{}}
	for _, media := range r.Body.Media {
		switch {
		case media == mediaNDJSON:
			b.Content[media] = contract.Media{Schema: &jsonschema.Schema{Type: "string", Description: "one of the array's items on each line"}}
		case r.Body.Type == nil:
			b.Content[media] = contract.Media{Schema: &jsonschema.Schema{Type: "object", Description: "the payload, as the transition declares it"}}
		default:
			b.Content[media] = contract.Media{Schema: d.schemas.Request(r.Body.Type)}
		}
	}
	if r.Body.Media == nil {
		b.Content["*/*"] = contract.Media{}
	}
	return b
}

// addressOf is a path as OpenAPI has it: the slashes in a part of many words are written %2F.
func addressOf(path string) string { return strings.ReplaceAll(path, "...}", "}") }

var noWord = regexp.MustCompile(`[^a-z0-9]+`)

var link = regexp.MustCompile(`\[([^\]]+)\]\(([\w-]+\.md[^)]*)\)`)

// linked makes the relative links of a text absolute.
func linked(text string) string { return link.ReplaceAllString(text, "[$1]("+docsURL+"$2)") }

// credentialSchemes are the ways to say who calls. Beside a grant stands nothing that has to be sent: the credential has it.
var credentialSchemes = map[string]contract.SecurityScheme{
	"jwt":    {Type: "http", Scheme: "bearer", Format: "JWT", Description: "a token of the identity provider, with grants"},
	"apiKey": {Type: "http", Scheme: "bearer", Format: "API key", Description: "an API key of /v1/keys"},
	"ticket": {Type: "http", Scheme: "bearer", Format: "ticket",
		Description: "a ticket of /v1/tickets; for a WebSocket as the subprotocol pawl.ticket.…"},
	"ticketCookie": {Type: "apiKey", In: "cookie", Name: cookieOfTicket,
		Description: "a ticket, for event streams of pages of the same origin"},
}

// names gives components names that are identifiers in every language. Generators make types of them in their own style, so two
// names that differ only in case or underscores count as one.
type names map[string]bool

// unique returns the name, with a number if it is taken.
func (n names) unique(name string) string {
	unique := name
	for i := 2; n[plainly(unique)]; i++ {
		unique = name + "_" + strconv.Itoa(i)
	}
	n[plainly(unique)] = true
	return unique
}

func plainly(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "")) }

// pascal writes the words of a text as one identifier: Idempotency-Key is IdempotencyKey.
func pascal(text string) string {
	words := strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	for i, w := range words {
		words[i] = strings.ToUpper(w[:1]) + w[1:]
	}
	return strings.Join(words, "")
}

// identifier is pascal, also for a text that begins with a digit.
func identifier(text string) string {
	if name := pascal(text); name == "" || name[0] < '0' || name[0] > '9' {
		return name
	}
	return "N" + pascal(text)
}
