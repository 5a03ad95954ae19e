package api_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/workflow"
)

func TestDocuments_Tags(t *testing.T) {
	s := newServer(t)
	for _, path := range []string{"/openapi.json", "/asyncapi.json"} {
		a := s.get(path)
		a.want(t, http.StatusOK)
		tag := a.header.Get("ETag")
		assert.Truef(t, tag != "" && s.get(path).header.Get("ETag") == tag, "%s has the tag %q", path, tag)
		if again := s.get(path, "If-None-Match", tag); again.status != http.StatusNotModified || len(again.body) > 0 {
			t.Errorf("%s is answered again with %d", path, again.status)
		}
	}
	other := newServerOf(t, []workflow.Source{postcard}, nil)
	assert.NotEqual(t, other.get("/openapi.json").header.Get("ETag"), s.get("/openapi.json").header.Get("ETag"),
		"another workflow is the same document")
	other.get("/openapi.json").want(t, http.StatusOK)
	assert.Contains(t, string(other.get("/openapi.json").body), `"/v1/workflows/postcard/write"`, "the workflow is not in the document")
}

// A representation has a tag of its own, and a proxy is told what it depends on.
func TestDocuments_Gzip(t *testing.T) {
	s := newServer(t)
	plain := s.get("/openapi.json", "Accept-Encoding", "identity")
	plain.want(t, http.StatusOK)
	if n := plain.header.Get("Content-Length"); n != strconv.Itoa(len(plain.body)) || plain.header.Get("Content-Encoding") != "" {
		t.Errorf("%s bytes are announced of %d", n, len(plain.body))
	}
	packed := s.get("/openapi.json", "Accept-Encoding", "br;q=1, gzip;q=0.8, *;q=0.1")
	packed.want(t, http.StatusOK)
	text, err := gzip.NewReader(bytes.NewReader(packed.body))
	var unpacked []byte
	if err == nil {
		unpacked, err = io.ReadAll(text)
	}
	assert.Truef(t, err == nil && bytes.Equal(unpacked, plain.body) && len(packed.body) <= len(plain.body)/8,
		"%d bytes of %d, %v", len(packed.body), len(plain.body), err)
	tag, tagOfPacked := plain.header.Get("ETag"), packed.header.Get("ETag")
	assert.NotEqual(t, tagOfPacked, tag, "both representations have the tag")
	for _, c := range []struct {
		accept, match, encoding, tag string
		status                       int
	}{
		{"gzip", tagOfPacked, "", tagOfPacked, 304},
		{"gzip", "W/" + tagOfPacked, "", tagOfPacked, 304},
		{"gzip", tag, "gzip", tagOfPacked, 200},
		{"identity", tag, "", tag, 304},
		{"identity", tagOfPacked, "", tag, 200},
		{"*", "", "gzip", tagOfPacked, 200},
		{"GZIP", "", "gzip", tagOfPacked, 200},
		{"gzip;q=0", "", "", tag, 200},
		{"gzip;q=0, *", "", "", tag, 200},
		{"gzip;q=0.5, identity", "", "", tag, 200},
		{"deflate, br", "", "", tag, 200},
	} {
		a := s.get("/openapi.json", "Accept-Encoding", c.accept, "If-None-Match", c.match)
		vary := strings.Join(a.header.Values("Vary"), ", ")
		if a.status != c.status || a.header.Get("Content-Encoding") != c.encoding || a.header.Get("ETag") != c.tag ||
			!strings.Contains(vary, "Accept-Encoding") {
			t.Errorf("Accept-Encoding %q, If-None-Match %q: %d %q %s, Vary %s", c.accept, c.match, a.status,
				a.header.Get("Content-Encoding"), a.header.Get("ETag"), vary)
		}
	}
}

// The documents are built when the node starts, and once for all requests.
func TestDocuments_BuiltInBackground(t *testing.T) {
	s := newServer(t)
	assert.Equal(t, 0, s.api.DocumentBuilds(), "they are built times before the start")
	s.api.Start()
	if err := s.api.Stop(t.Context()); err != nil { // which waits for that
		t.Fatal(err)
	}
	assert.Equal(t, 1, s.api.DocumentBuilds(), "they are built times after the start")
	s.get("/openapi.json").want(t, http.StatusOK)
	s.get("/asyncapi.json").want(t, http.StatusOK)
	assert.Equal(t, 1, s.api.DocumentBuilds(), "they are built times")
}

type card struct{}

// postcard is a workflow beside those of every server.
var postcard = workflow.Define("postcard", 1,
	workflow.Start("write", "written", func(*workflow.Call, *card, workflow.None) error { return nil })).Final("written")

// The page has a policy under which a browser loads nothing from anywhere else.
func TestDocsPageHasCSP(t *testing.T) {
	g := newGuarded(t)
	for path, want := range map[string]string{"/docs": "<rapi-doc", "/docs?": "pawl keys create", "/docs/page.js": "fetch('openapi.json'",
		"/docs/rapidoc.js": "RapiDoc"} {
		a := g.get(path) // without a credential
		policy := a.header.Get("Content-Security-Policy")
		assert.Truef(t, a.status == 200 && strings.Contains(string(a.body), want), "%s: %d %.100s", path, a.status, a.body)
		for _, part := range []string{"default-src 'none'", "script-src 'self'", "connect-src 'self'", "frame-ancestors 'none'"} {
			assert.Containsf(t, policy, part, "%s has the policy", path)
		}
	}
	g.get("/openapi.json").wantProblem(t, 401, workflow.Unauthorized)
	g.get("/openapi.json", g.with("read")...).want(t, 200)
}
