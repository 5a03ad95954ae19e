package api

import (
	"reflect"
	"regexp"
	"slices"

	"github.com/pawlhq/pawl/workflow"
)

// Route is a row of the table of routes: all that there is to say about a method of
// an address. What is served, what is refused and what is documented come from it.
type Route struct {
	Section string // of the documentation that lists the route
	Method  string // GET serves HEAD too
	Path    string // as http.ServeMux has it
	Grant   Grant  // what a caller needs
	Doc     string

	Params      []Param // of path, query and header; those of the path first. What is not here is refused
	AnyQuery    bool    // the query is not looked at
	EmptyIsNone bool    // a query parameter without a value counts as absent, except attributes
	NoKey       bool    // an Idempotency-Key is refused, and a scope
	ByItem      bool    // what it is about is not in its address; the handler asks who may, of each thing
	Body        *Body   // nil: a body is not looked at
	Answers     []Answer
	Headers     []Header          // that its answers may have, beside those of every answer
	Codes       []workflow.Code   // of the problems that it answers with
	Operations  []StreamOperation // of a WebSocket: what a client may ask on it

	ActsAs bool // a caller may name another actor

	handle handler
}

// Body is what a request carries.
type Body struct {
	Type     reflect.Type // of its JSON; nil for a payload or a message, which a workflow declares
	Media    []string     // nil: its content type is not looked at
	Optional bool         // without one the request is served too
	Limit    func(Limits) int64
}

// Answer is how a request may end well.
type Answer struct {
	Status int
	Media  string       // "" for no body
	Type   reflect.Type // of its JSON; nil where it is not the API's to say
	Grant  Grant        // the grant for this answer, in addition to the route's; "" for none
}

// Header is one of an answer.
type Header struct{ Name, Doc string }

// StreamOperation is what a client asks in a message on a WebSocket.
type StreamOperation struct {
	Name  string // the message's "op"
	Grant Grant
	Doc   string
}

var pathName = regexp.MustCompile(`\{(\w+)`)

// complete returns the route with the parameters that its path names, those that say who calls, and the codes
// of what can go wrong everywhere.
//
// It panics where the route, or something that streams, says not what a caller needs: so the program does not start.
func (r Route) complete() Route {
	if r.Grant == "" || slices.ContainsFunc(r.Operations, func(o StreamOperation) bool { return o.Grant == "" }) ||
		slices.ContainsFunc(r.Answers, func(a Answer) bool { return a.Media == mediaEventStream && a.Grant == "" }) {
		panic("api: the route " + r.Method + " " + r.Path + " does not say what a caller needs")
	}
	var all []Param
	for _, name := range pathName.FindAllStringSubmatch(r.Path, -1) {
		all = append(all, pathParams[name[1]])
	}
	r.Params = append(all, r.Params...)
	if r.Grant != Public {
		r.Params = append(r.Params, naming(r.ActsAs)...)
	}
	codes := []workflow.Code{workflow.Internal}
	if !r.isHealth() {
		codes = append(codes, workflow.RateLimited, workflow.Overloaded)
	}
	if r.Grant != Public {
		codes = append(codes, workflow.InvalidRequest, workflow.Unauthorized, workflow.Forbidden,
			workflow.Unavailable, workflow.TimedOut)
	}
	if r.Grant != Public && !r.ByItem && (r.param("id") != nil || r.param("instance") != nil) {
		codes = append(codes, workflow.InstanceNotFound)
	}
	if r.Body != nil {
		codes = append(codes, workflow.InvalidRequest, workflow.TooLarge)
	}
	if r.Body != nil && r.Body.Media != nil {
		codes = append(codes, workflow.UnsupportedMedia)
	}
	if len(r.media()) > 1 {
		codes = append(codes, workflow.NotAcceptable)
	}
	codes = append(codes, r.Codes...)
	r.Codes = nil
	for _, c := range workflow.Codes { // in their order, each once
		if slices.Contains(codes, c.Code) {
			r.Codes = append(r.Codes, c.Code)
		}
	}
	return r
}

// isHealth reports whether the route is a health check, which is answered however busy the node is.
func (r *Route) isHealth() bool { return r.Path == atHealth || r.Path == atReady }

// param is a declared parameter, nil for none. A name that ends in "." stands for
// all names that begin with it.
func (r *Route) param(name string) *Param {
	for i := range r.Params {
		if r.Params[i].is(name) {
			return &r.Params[i]
		}
	}
	return nil
}

// needs returns the grant for an operation on the route's WebSocket; "" for an undeclared operation, which no caller has.
func (r *Route) needs(operation string) Grant {
	for _, o := range r.Operations {
		if o.Name == operation {
			return o.Grant
		}
	}
	return ""
}

// media are the types of the answers, the preferred one first.
func (r *Route) media() (all []string) {
	for _, a := range r.Answers {
		if a.Media != "" && !slices.Contains(all, a.Media) {
			all = append(all, a.Media)
		}
	}
	return all
}
