package api

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/api/internal/stream"
	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/auth"
	testdocs "github.com/pawlhq/pawl/internal/testkit/docs"
	"github.com/pawlhq/pawl/workflow"
)

var anyName = regexp.MustCompile(`\{[^}]*\}`)

func TestEveryRouteIsWhole(t *testing.T) {
	grants := append([]Grant{Public, AnyCaller}, auth.Rights...)
	for _, r := range Routes() {
		assert.Falsef(t, !slices.Contains(grants, r.Grant) || r.handle == nil || r.Section == "" || r.Doc == "" || len(r.Answers) == 0 || len(r.Codes) == 0, "%s %s: %+v", r.Method, r.Path, r)
		assert.Equalf(t, (r.Grant == auth.Keys), strings.HasPrefix(r.Path, keys), "%s %s is for %s", r.Method, r.Path, r.Grant)
		assert.Falsef(t, strings.HasPrefix(r.Path, ops) != (r.Grant == Operate || r.Grant == OperateAll) && r.Path != "/metrics",
			"%s %s is for %s", r.Method, r.Path, r.Grant)
		names := map[string]bool{}
		for _, p := range r.Params {
			assert.Truef(t, p.Name != "" && p.Doc != "" && p.Kind != "" && !names[p.Name] && (p.Kind != Integer || p.Max != 0) &&
				(p.In == InPath || p.In == InQuery || p.In == InHeader),
				"%s %s: parameter %+v", r.Method, r.Path, p)
			assert.Falsef(t, p.Default != "" && p.check(p.Name, p.Default) != nil,
				"%s %s: the default of %s is refused", r.Method, r.Path, p.Name)
			names[p.Name] = true
		}
		for _, a := range r.Answers {
			assert.Falsef(t, a.Grant != "" && !slices.Contains(grants, a.Grant), "%s %s: the answer %+v", r.Method, r.Path, a)
		}
		for _, o := range r.Operations {
			assert.Truef(t, slices.Contains(grants, o.Grant) && o.Doc != "", "%s %s: the operation %+v", r.Method, r.Path, o)
		}
		b := r.Body
		assert.Falsef(t, b != nil && b.Limit(Limits{Body: 1, BulkBody: 1}) < 1, "%s %s: the body has no limit", r.Method, r.Path)
	}
}

// A row that says not what a caller needs does not start, of whatever it is that is left out.
func TestRouteNeedsGrant(t *testing.T) {
	for name, r := range map[string]Route{
		"a route": {Method: "GET", Path: "/v1/open"},
		"an operation": {Method: "GET", Path: "/v1/open", Grant: Read,
			Operations: []StreamOperation{{Name: "subscribe", Grant: Streaming}, {Name: "take"}}},
		"a stream": {Method: "GET", Path: "/v1/open", Grant: Read, Answers: []Answer{{Status: 200, Media: mediaEventStream}}},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				told, _ := recover().(string)
				assert.Contains(t, told, "GET /v1/open", "it is taken, or told as")
			}()
			r.complete()
		})
	}
}

// The mux serves each row of the table and nothing else: an address of a row leads to
// that row, and any other method is told those of the table.
func TestTableIsServed(t *testing.T) {
	a := &API{}
	mux := a.routes()
	methods := map[string][]string{}
	for _, r := range Routes() {
		methods[r.Path] = append(methods[r.Path], r.Method)
		if r.Method == http.MethodGet {
			methods[r.Path] = append(methods[r.Path], http.MethodHead)
		}
		path := anyName.ReplaceAllString(r.Path, "any-name")
		_, pattern := mux.Handler(httptest.NewRequest(r.Method, path, nil))
		assert.Equalf(t, r.Method+" "+r.Path, pattern, "%s %s is served by", r.Method, path)
	}
	for path, allowed := range methods {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
			if slices.Contains(allowed, method) {
				continue
			}
			w := httptest.NewRecorder()
			h, pattern := mux.Handler(httptest.NewRequest(method, anyName.ReplaceAllString(path, "any-name"), nil))
			if pattern != "" { // of an address with fewer words of its own
				continue
			}
			h.ServeHTTP(w, httptest.NewRequest(method, "/", nil))
			told := strings.Split(w.Header().Get("Allow"), ", ")
			for _, m := range allowed {
				assert.Truef(t, w.Code == http.StatusMethodNotAllowed && slices.Contains(told, m),
					"%s %s: %d, allowed are %q, not %s", method, path, w.Code, told, m)
			}
		}
	}
}

// The table has the requests of a WebSocket and the headers of an event stream.
func TestStreamsFollowTable(t *testing.T) {
	var all []string
	for _, r := range Routes() {
		for _, o := range r.Operations {
			all = append(all, o.Name)
		}
		for _, a := range r.Answers {
			assert.Equalf(t, (a.Grant == Streaming), (a.Media == mediaEventStream),
				"%s %s: what streams, and only that, needs the grant to: %+v", r.Method, r.Path, a)
		}
		assert.Truef(t, r.needs("submit") == "", "%s %s declares what it does not", r.Method, r.Path)
	}
	assert.Truef(t, slices.Equal(all, stream.Operations), "declared are %q, served %q", all, stream.Operations)
	asks := &http.Request{Header: http.Header{"Accept": {mediaEventStream}}}
	r := &request{Request: asks, route: &Route{Answers: []Answer{answer[wire.Events](200),
		{Status: 200, Media: mediaEventStream, Grant: OperateAll}}}}
	var asked []Grant
	_, err := r.accepted(func(g Grant) error { asked = append(asked, g); return nil })
	assert.Truef(t, err == nil && slices.Equal(asked, []Grant{OperateAll}), "asked for are %q, %v", asked, err)
}

// A transition cannot have a name that the table uses in its place.
func TestReservedTransitionNames(t *testing.T) {
	taken := regexp.MustCompile(`^/v1/(?:instances/\{id\}|workflows/\{workflow\}(?:/keys/\{business_key\})?)/(\w+)`)
	type data struct{}
	for _, r := range Routes() {
		name := taken.FindStringSubmatch(r.Path)
		if name == nil {
			continue
		}
		_, err := workflow.Define("w", 1, workflow.Start(name[1], "s", func(*workflow.Call, *data, workflow.None) error { return nil })).
			Final("s").Build()
		assert.ErrorContainsf(t, err, "REST interface", "a transition may be named %q, as %s has it", name[1], r.Path)
	}
}

func TestLoopbackRightsFollowRoles(t *testing.T) {
	a := &API{}
	for role, has := range map[string]int{"": 5, "clerk": 5, "Operator": 5, Operator: 6, OperatorOfAll: 7, "*": 7} {
		c := Caller{Grants: grantsOf([]string{role})}
		for i, g := range auth.Rights {
			err := a.may(t.Context(), &c, g, auth.Target{})
			assert.Truef(t, (err == nil) == (i < has) && (err == nil || workflow.CodeOf(err) == workflow.Forbidden),
				"role %q, grant %s: %v", role, g, err)
		}
		for _, g := range []Grant{"", "none"} {
			assert.Truef(t, a.may(t.Context(), &c, g, auth.Target{}) != nil && mayAny(&c, g) != nil,
				"role %q has the grant %q", role, g)
		}
	}
}

// Clients read members by name: testdata/members.txt has the members of every body and answer of the table.
func TestMembers_Golden(t *testing.T) {
	all, seen := map[string]bool{}, map[reflect.Type]bool{}
	add := func(where string, t reflect.Type) {
		if t != nil && !seen[t] { // each type once, for the first route that has it
			members(all, where, t, nil)
			seen[t] = true
		}
	}
	for _, r := range Routes() {
		pattern := r.Method + " " + r.Path
		if r.Body != nil {
			add(pattern+" takes ", r.Body.Type)
		}
		for _, a := range r.Answers {
			add(fmt.Sprintf("%s %d ", pattern, a.Status), a.Type)
		}
	}
	got := strings.Join(slices.Sorted(maps.Keys(all)), "\n") + "\n"
	testdocs.File(t, "testdata/members.txt", got)
}

// members adds the JSON members of a type, as far down as they are this module's.
func members(all map[string]bool, prefix string, t reflect.Type, above []reflect.Type) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || !strings.Contains(t.PkgPath(), "pawl") || slices.Contains(above, t) {
		return
	}
	for _, f := range reflect.VisibleFields(t) {
		if !f.IsExported() || f.Anonymous || len(f.Index) > 1 && f.Tag.Get("json") == "" {
			continue
		}
		name := f.Tag.Get("json")
		if name == "-" {
			continue
		}
		all[prefix+name] = true
		base, _, _ := strings.Cut(name, ",")
		members(all, prefix+base+".", f.Type, append(above, t))
	}
}
