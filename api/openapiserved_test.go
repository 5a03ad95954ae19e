package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/workflow"
)

func TestTheDocumentsAreServedWithTheirTags(t *testing.T) {
	s := newServer(t)
	for _, path := range []string{"/openapi.json", "/asyncapi.json"} {
		a := s.get(path)
		a.want(t, http.StatusOK)
		tag := a.header.Get("ETag")
		if tag == "" || s.get(path).header.Get("ETag") != tag {
			t.Errorf("%s has the tag %q", path, tag)
		}
		if again := s.get(path, "If-None-Match", tag); again.status != http.StatusNotModified || len(again.body) > 0 {
			t.Errorf("%s is answered again with %d", path, again.status)
		}
	}
	other := newServerOf(t, []workflow.Source{postcard}, nil)
	if s.get("/openapi.json").header.Get("ETag") == other.get("/openapi.json").header.Get("ETag") {
		t.Error("another workflow is the same document")
	}
	other.get("/openapi.json").want(t, http.StatusOK)
	if body := string(other.get("/openapi.json").body); !strings.Contains(body, `"/v1/workflows/postcard/write"`) {
		t.Error("the workflow is not in the document")
	}
}

type card struct{}

// postcard is a workflow beside those of every server.
var postcard = workflow.Define("postcard", 1,
	workflow.Start("write", "written", func(*workflow.Call, *card, workflow.None) error { return nil })).Final("written")

// The page has a policy under which a browser loads nothing from anywhere else.
func TestThePageForPeopleIsServedUnderAPolicy(t *testing.T) {
	g := newGuarded(t)
	for path, want := range map[string]string{"/docs": "<rapi-doc", "/docs?": "pawl keys create", "/docs/page.js": "fetch('openapi.json'",
		"/docs/rapidoc.js": "RapiDoc"} {
		a := g.get(path) // without a credential
		policy := a.header.Get("Content-Security-Policy")
		if a.status != 200 || !strings.Contains(string(a.body), want) {
			t.Errorf("%s: %d %.100s", path, a.status, a.body)
		}
		for _, part := range []string{"default-src 'none'", "script-src 'self'", "connect-src 'self'", "frame-ancestors 'none'"} {
			if !strings.Contains(policy, part) {
				t.Errorf("%s has the policy %s", path, policy)
			}
		}
	}
	g.get("/openapi.json").wantProblem(t, 401, workflow.Unauthorized)
	g.get("/openapi.json", g.with("read")...).want(t, 200)
}

// Who tries an address is told where to look.
func TestAnAddressWithNothingSaysWhereThereIsSomething(t *testing.T) {
	g := newGuarded(t)
	for _, path := range []string{"/", "/docs/", "/v1", "/swagger"} {
		if p := g.get(path).wantProblem(t, 404, workflow.NotFound); !strings.Contains(p.Detail, "/docs ") ||
			!strings.Contains(p.Detail, "/openapi.json") {
			t.Errorf("%s: %s", path, p.Detail)
		}
	}
}
