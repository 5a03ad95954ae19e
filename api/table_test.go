package api

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/workflow"
)

var anyName = regexp.MustCompile(`\{[^}]*\}`)

func TestEveryRouteIsWhole(t *testing.T) {
	grants := []Grant{Public, Read, Streaming, Submit, Operate, OperateAll}
	for _, r := range Routes() {
		if !slices.Contains(grants, r.Grant) || r.handle == nil || r.Section == "" || r.Doc == "" || len(r.Answers) == 0 || len(r.Codes) == 0 {
			t.Errorf("%s %s: %+v", r.Method, r.Path, r)
		}
		if strings.HasPrefix(r.Path, ops) != (r.Grant == Operate || r.Grant == OperateAll) && r.Path != "/metrics" {
			t.Errorf("%s %s is for %s", r.Method, r.Path, r.Grant)
		}
		names := map[string]bool{}
		for _, p := range r.Params {
			if p.Name == "" || p.Doc == "" || p.Kind == "" || names[p.Name] || p.Kind == Integer && p.Max == 0 ||
				p.In != InPath && p.In != InQuery && p.In != InHeader {
				t.Errorf("%s %s: parameter %+v", r.Method, r.Path, p)
			}
			if p.Default != "" && p.check(p.Name, p.Default) != nil {
				t.Errorf("%s %s: the default of %s is refused", r.Method, r.Path, p.Name)
			}
			names[p.Name] = true
		}
		if b := r.Body; b != nil && b.Limit(Limits{Body: 1, BulkBody: 1}) < 1 {
			t.Errorf("%s %s: the body has no limit", r.Method, r.Path)
		}
	}
}

// The mux serves each row of the table and nothing else: an address of a row leads to
// that row, and any other method is told those of the table.
func TestTheTableIsWhatIsServed(t *testing.T) {
	a := &API{}
	mux := a.routes()
	methods := map[string][]string{}
	for _, r := range Routes() {
		methods[r.Path] = append(methods[r.Path], r.Method)
		if r.Method == http.MethodGet {
			methods[r.Path] = append(methods[r.Path], http.MethodHead)
		}
		path := anyName.ReplaceAllString(r.Path, "any-name")
		if _, pattern := mux.Handler(httptest.NewRequest(r.Method, path, nil)); pattern != r.Method+" "+r.Path {
			t.Errorf("%s %s is served by %q", r.Method, path, pattern)
		}
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
				if w.Code != http.StatusMethodNotAllowed || !slices.Contains(told, m) {
					t.Errorf("%s %s: %d, allowed are %q, not %s", method, path, w.Code, told, m)
				}
			}
		}
	}
}

func TestRightsAreThoseOfTheRoles(t *testing.T) {
	all := []Grant{Public, Read, Streaming, Submit, Operate, OperateAll}
	for role, has := range map[string]int{"": 4, "clerk": 4, "Operator": 4, Operator: 5, OperatorOfAll: 6, "*": 6} {
		c := Caller{Roles: []string{role}}
		for i, g := range all {
			if err := c.may(g); (err == nil) != (i < has) || err != nil && workflow.CodeOf(err) != workflow.Forbidden {
				t.Errorf("role %q, grant %s: %v", role, g, err)
			}
		}
		for _, g := range []Grant{"", "none"} {
			if c.may(g) == nil && has < 6 {
				t.Errorf("role %q has the grant %q", role, g)
			}
		}
	}
}
