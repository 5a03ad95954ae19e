package api

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/api/internal/budget"
	"github.com/pawlhq/pawl/api/internal/parse"
	"github.com/pawlhq/pawl/api/internal/stream"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// request is the argument of a handler: its sender is authorized, and its parameters are those that its route declares. Reading an
// undeclared one panics.
type request struct {
	*http.Request
	caller Caller
	route  *Route
	prefix string // of the paths that clients see
	query  url.Values
	holder *budget.Holder // of the memory that the request needs
	actAs  string         // the actor that the caller names, "" for himself
	named  bool           // the handler has looked up the instance of the business key in the path
}

// let reads a request, and refuses what its route does not take. The body is left. h is
// the header of the answer.
func (a *API) let(h http.Header, r *request) (err error) {
	if r.route.Grant != Public {
		// Refuse a header of ours that is not known: what it was meant to say would be passed over in silence, such as
		// a role that is not "every role".
		for name := range r.Request.Header {
			ours := strings.HasPrefix(name, "Pawl-") || strings.HasPrefix(name, "Idempotency-")
			if ours && !slices.Contains(ofCommands, name) && !slices.Contains(ofCallers, name) {
				return workflow.Errorf(workflow.InvalidRequest, "there is no header %s", name)
			}
		}
		if r.caller, err = a.identify(r); err != nil {
			challenge(h, err)
			return err
		}
		if err := mayAny(&r.caller, r.route.Grant); err != nil {
			return err
		}
		if err := r.readActor(); err != nil {
			return err
		}
	}
	for i := range r.route.Params {
		if p := &r.route.Params[i]; p.In == InPath {
			if err := p.check(p.Name, r.PathValue(p.Name)); err != nil {
				return err
			}
		}
	}
	if err := r.readQuery(); err != nil {
		return err
	}
	if err := r.unwanted(); err != nil {
		return err
	}
	if err := r.contentType(); err != nil || r.route.ByItem {
		return err
	}
	return a.may(r.Context(), &r.caller, r.route.Grant, r.about())
}

// readQuery refuses a parameter that the route does not declare, that is given too
// often, or that means nothing.
func (r *request) readQuery() error {
	if r.route.AnyQuery {
		return nil
	}
	if r.URL.RawQuery != "" {
		values, err := url.ParseQuery(r.URL.RawQuery)
		if err != nil {
			return workflow.Errorf(workflow.InvalidRequest, "the query is not well-formed")
		}
		r.query = values
	}
	for name, given := range r.query {
		if err := r.checkQuery(name, given); err != nil {
			return err
		}
	}
	for i := range r.route.Params {
		if err := r.checkGiven(&r.route.Params[i]); err != nil {
			return err
		}
	}
	return nil
}

// checkGiven holds a parameter of the query against the others that are given, and
// against who asks.
func (r *request) checkGiven(p *Param) error {
	switch given := r.given(p.Name); {
	case p.In != InQuery:
	case p.Required && !given:
		return workflow.Errorf(workflow.InvalidRequest, "query parameter %q is missing", p.Name)
	case p.Needs != "" && given && !r.given(p.Needs):
		return workflow.Errorf(workflow.InvalidRequest, "query parameter %q needs the %s", p.Name, spoken(p.Needs))
	case p.Grant != "" && r.boolean(p.Name):
		return mayAny(&r.caller, p.Grant)
	}
	return nil
}

// checkQuery validates the values of a query parameter. It removes values that count as absent.
func (r *request) checkQuery(name string, given []string) error {
	p := r.route.param(name)
	if p == nil || p.In != InQuery {
		return workflow.Errorf(workflow.InvalidRequest, "unknown query parameter %q", parse.Shown(name))
	}
	if n, most := len(given), max(p.Many, 1); n > most {
		return workflow.Errorf(workflow.InvalidRequest, "query parameter %q is given %d times; %d are the most", parse.Shown(name), n, most)
	}
	if problem := transitions.TextProblem(name, maxText); problem != "" {
		return workflow.Errorf(workflow.InvalidRequest, "the name of a query parameter %s", problem)
	}
	if r.route.EmptyIsNone && name == p.Name && len(given) == 1 && given[0] == "" {
		delete(r.query, name)
		return nil
	}
	for i, value := range given {
		if p.Many > 0 && (value == "" || slices.Contains(given[:i], value)) {
			return workflow.Errorf(workflow.InvalidRequest, "query parameter %q is given several times, and %q is empty or there twice",
				name, parse.Shown(value))
		}
		if err := p.check(name, value); err != nil {
			return err
		}
	}
	return nil
}

// unwanted refuses a header of a command where it would change what is asked for, and
// means nothing.
func (r *request) unwanted() error {
	if r.route.Grant == Public || r.route.Method == http.MethodGet {
		return nil
	}
	for _, name := range ofCommands {
		ofKey := name == headerKey || name == headerScope // passed over, where there is no reason against it
		if len(r.Header[name]) > 0 && r.route.param(name) == nil && (!ofKey || r.route.NoKey) {
			return workflow.Errorf(workflow.InvalidRequest, "the header %s means nothing here", name)
		}
	}
	return nil
}

// contentType refuses a body that is not what the route takes.
func (r *request) contentType() error {
	b := r.route.Body
	if b == nil || b.Media == nil || b.Optional && untyped(r.Request) {
		return nil
	}
	_, err := contentType(r.Request, b.Media...)
	return err
}

// tenant returns the tenant of the request: the caller's, or "" for all tenants.
func (r *request) tenant() string {
	if r.given("all_tenants") && r.boolean("all_tenants") {
		return ""
	}
	return r.caller.Tenant
}

func (r *request) given(name string) bool { return len(r.query[name]) > 0 }

// value returns what is given, else the default, "" for none.
func (r *request) value(name string, kind Kind) (string, *Param) {
	p := r.route.param(name)
	switch {
	case p == nil || p.Kind != kind || p.In == InHeader:
		panic(fmt.Sprintf("api: the route %s %s declares no %s %q", r.route.Method, r.route.Path, kind, name))
	case p.In == InPath:
		return r.PathValue(name), p
	case r.given(name):
		return r.query[name][0], p
	}
	return p.Default, p
}

func (r *request) text(name string) string {
	s, _ := r.value(name, Text)
	return s
}

// texts are all that are given.
func (r *request) texts(name string) []string {
	r.value(name, Text)
	return r.query[name]
}

// integer is 0 where none is given and there is no default.
func (r *request) integer(name string) int64 {
	s, p := r.value(name, Integer)
	n, _ := p.integer(s)
	return n
}

func (r *request) boolean(name string) bool {
	s, _ := r.value(name, Boolean)
	return s == "true"
}

// choice is nil where none is given.
func (r *request) choice(name string) *bool {
	if b := r.boolean(name); r.given(name) {
		return &b
	}
	return nil
}

// time is the zero time where none is given.
func (r *request) time(name string) time.Time {
	s, _ := r.value(name, Time)
	t, _ := parseTime(s)
	return t
}

// id is that of an instance, zero where none is given.
func (r *request) id(name string) uuid.UUID {
	s, _ := r.value(name, UUID)
	id, _ := parse.ID(s)
	return id
}

func (r *request) start(name string) stream.Start {
	s, _ := r.value(name, Position)
	p, _ := stream.ParseStart(s)
	return p
}

// attributes returns what is asked of attributes, nil for nothing.
func (r *request) attributes() (all map[string]string) {
	r.value(attributes.Name+"x", Text)
	for name, values := range r.query {
		if attribute, is := strings.CutPrefix(name, attributes.Name); is {
			if all == nil {
				all = map[string]string{}
			}
			all[attribute] = values[0]
		}
	}
	return all
}

// limit is how many entries a page has.
func (r *request) limit() int { return int(r.integer("limit")) }

// with returns the request for who reads a header of it.
func (r *request) with(header string) *http.Request {
	if p := r.route.param(header); p == nil || p.In != InHeader {
		panic(fmt.Sprintf("api: the route %s %s declares no header %s", r.route.Method, r.route.Path, header))
	}
	return r.Request
}
