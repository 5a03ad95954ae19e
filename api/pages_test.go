package api_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// A page of large rows ends early, and the next one begins after it: all pages together have each row once.
func TestPagesEndByBytes(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	const rows, size = 9, transitions.PageBytes * 2 / 5 // three fill a page
	text := strings.Repeat("x", size)
	for i := range rows {
		s.post("/v1/workflows/parcel/bulky", fmt.Sprint("b", i), `{"text":"`+text+`"}`).want(t, 201)
	}
	s.post("/v1/workflows/parcel/label", "l", `{"to":"Wien","label":"L-1"}`).want(t, 201)
	for i := range rows - 1 {
		s.post("/v1/workflows/parcel/keys/L-1/stamp", fmt.Sprint("s", i), `{"price":1,"tags":["`+text+`"]}`).want(t, 200)
	}
	for _, c := range []struct {
		path, list, next, cursor string
		least                    int // pages
	}{
		{"/v1/instances?limit=100", "instances", "next", "cursor", 4},
		{"/v1/instances?limit=2", "instances", "next", "cursor", 5},
		{"/v1/workflows/parcel/keys/L-1/history?limit=100", "entries", "next_after", "after", 3},
		{"/v1/events?limit=100&state=packed", "events", "next_after", "after", 4},
	} {
		seen, pages := map[string]bool{}, 1
		for cursor := ""; ; pages++ {
			path := c.path
			if cursor != "" {
				path += "&" + c.cursor + "=" + url.QueryEscape(cursor)
			}
			a := s.get(path)
			a.want(t, 200)
			assert.Truef(t, len(a.body) <= 2*transitions.PageBytes, "%s: a page of %d bytes", path, len(a.body))
			var page map[string]json.RawMessage
			var list []json.RawMessage
			require.NoError(t, errors.Join(json.Unmarshal(a.body, &page), json.Unmarshal(page[c.list], &list)))
			for _, row := range list {
				id := string(row[:min(len(row), 200)]) // of an instance its id, of an entry its version, of an event its id
				assert.Falsef(t, seen[id], "%s: twice: %s", path, id)
				seen[id] = true
			}
			next := strings.Trim(string(page[c.next]), `"`)
			if next == "" || next == cursor || len(list) == 0 {
				break
			}
			cursor = next
		}
		assert.Truef(t, pages >= c.least, "%s: %d pages", c.path, pages)
		want := rows + 1
		if c.list == "entries" {
			want = rows
		} else if c.list == "events" {
			want = len(seen) // of the stamps too
		}
		assert.Lenf(t, seen, want, "%s rows", c.path)
	}
	// The timeline of a case is as long as fits, and ends with the newest transition.
	var whole struct {
		Earlier  int64 `json:"earlier"`
		Timeline []struct {
			Version int64 `json:"version"`
		} `json:"timeline"`
	}
	a := s.get("/v1/ops/instances/" + transitions.InstanceID("default", "parcel", "L-1").String())
	a.want(t, 200)
	require.NoError(t, json.Unmarshal(a.body, &whole))
	if n := len(whole.Timeline); n == 0 || n == rows || whole.Timeline[n-1].Version != rows || whole.Earlier != rows-int64(n) {
		t.Errorf("a timeline of %d transitions after %d: %+v", n, whole.Earlier, whole.Timeline)
	}
}

// neverRead is a body that must not be read.
type neverRead struct{ t *testing.T }

func (b neverRead) Read([]byte) (int, error) {
	b.t.Error("the body was read")
	return 0, errors.New("never read")
}

// A message whose headers say that it is not signed is refused before its body is read.
func TestHeadersBeforeBody(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(c *api.Config) {
		c.Inbox = map[string]api.Consumer{"shop": {
			CheckHeaders: func(h http.Header) error {
				if h.Get("Signed") == "" {
					return errors.New("there is no signature")
				}
				return nil
			},
			Verify: func(http.Header, []byte) (string, error) { return "", errors.New("the signature is wrong") },
		}}
	})
	send := func(r *http.Request) answer {
		w := httptest.NewRecorder()
		s.api.ServeHTTP(w, r)
		return answer{status: w.Code, header: w.Header(), body: w.Body.Bytes()}
	}
	unsigned := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/v1/inbox/shop", neverRead{t})
	unsigned.ContentLength = 100
	send(unsigned).wantProblem(t, 401, workflow.Unauthorized)
	signed := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/v1/inbox/shop", bytes.NewReader([]byte("{}")))
	signed.Header.Set("Signed", "yes")
	p := send(signed).wantProblem(t, 401, workflow.Unauthorized)
	assert.Containsf(t, p.Detail, "is wrong", "%+v", p)
}

// A body without memory for it is refused before it is read, whether its length is announced or not.
func TestBodiesNeedMemory(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(c *api.Config) {
		c.Limits.Memory, c.Limits.Body, c.Limits.BulkBody = 8<<20, 100<<10, 400<<10
		c.Inbox = map[string]api.Consumer{"shop": {Verify: func(http.Header, []byte) (string, error) { return "", errors.New("unsigned") }}}
	})
	for _, announced := range []bool{true, false} {
		for path, c := range map[string]struct {
			size, status int
			code         workflow.Code
		}{
			"/v1/inbox/shop":            {90 << 10, 401, workflow.Unauthorized},
			"/v1/commands?dry_run=true": {400 << 10, 400, workflow.InvalidRequest},
		} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost"+path, strings.NewReader(strings.Repeat(" ", c.size)))
			if !announced {
				r.ContentLength = -1
			}
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			s.api.ServeHTTP(w, r)
			(&answer{status: w.Code, header: w.Header(), body: w.Body.Bytes()}).wantProblem(t, c.status, c.code)
		}
	}
	_, held, refused := s.api.Memory()
	assert.Truef(t, held == 0 && refused == 0, "%d bytes are held after the requests, %d were refused", held, refused)
}
