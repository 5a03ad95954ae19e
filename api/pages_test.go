package api_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// A page of large rows ends early, and the next one begins after it.
func TestPagesEndByBytes(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	const rows, size = 7, transitions.PageBytes * 2 / 5 // three fill a page
	text := strings.Repeat("x", size)
	s.post("/v1/workflows/parcel/label", "l", `{"to":"Wien","label":"L-1"}`).want(t, 201)
	for i := range rows {
		s.post("/v1/workflows/parcel/bulky", fmt.Sprint("b", i), `{"text":"`+text+`"}`).want(t, 201)
		s.post("/v1/workflows/parcel/keys/L-1/stamp", fmt.Sprint("s", i), `{"price":1,"tags":["`+text+`"]}`).want(t, 200)
	}
	for path, c := range map[string]struct{ list, next string }{
		"/v1/instances?limit=100&cursor=":                        {"instances", "next"},
		"/v1/workflows/parcel/keys/L-1/history?limit=100&after=": {"entries", "next_after"},
	} {
		n, pages := 0, 0
		for next := ""; pages == 0 || next != "" && n <= rows; pages++ {
			a := s.get(path + next)
			assert.Truef(t, a.status == 200 && len(a.body) <= 2*transitions.PageBytes, "%s%s: %d, %d bytes", path, next, a.status, len(a.body))
			var page map[string]json.RawMessage
			var list []json.RawMessage
			require.NoError(t, errors.Join(json.Unmarshal(a.body, &page), json.Unmarshal(page[c.list], &list)))
			n, next = n+len(list), strings.Trim(string(page[c.next]), `"`)
		}
		assert.Truef(t, n == rows+1 && pages >= 3, "%s: %d rows on %d pages", path, n, pages)
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
		for path, size := range map[string]int{"/v1/inbox/shop": 90 << 10, "/v1/commands?dry_run=true": 400 << 10} {
			r := s.request(t.Context(), http.MethodPost, path, bytes.Repeat([]byte(" "), size), "Content-Type", "application/json")
			if !announced {
				r.ContentLength = -1
			}
			assert.Containsf(t, []int{400, 401}, s.send(r).status, "%s: the body is read", path)
		}
	}
	_, held, refused := s.api.Memory()
	assert.Truef(t, held == 0 && refused == 0, "%d bytes are held after the requests, %d were refused", held, refused)
}

// slowBody is a body that arrives as its connection's deadline allows.
type slowBody struct {
	*httptest.ResponseRecorder
	deadline time.Time // of the connection
	met      time.Time // while the body was read
	stalls   bool
	rest     *strings.Reader
}

func (s *slowBody) SetReadDeadline(at time.Time) error {
	s.deadline = at
	return nil
}

func (s *slowBody) Read(p []byte) (int, error) {
	s.met = s.deadline
	if s.stalls {
		if s.deadline.IsZero() {
			return 0, errors.New("this would wait for ever")
		}
		return 0, os.ErrDeadlineExceeded
	}
	return s.rest.Read(p)
}

// An unauthenticated sender cannot keep a connection open by sending slowly. One that has sent everything may wait for the answer.
func TestBodyHasDeadline(t *testing.T) {
	t.Parallel()
	verify := func(http.Header, []byte) (string, error) { return "", errors.New("unknown") }
	s := newServer(t, func(c *api.Config) { c.Inbox = map[string]api.Consumer{"shop": {Verify: verify}} })
	for _, path := range []string{"/v1/inbox/shop", "/v1/workflows/parcel/pack", "/v1/commands", "/v1/ops/sinks/main/pause"} {
		for _, stalls := range []bool{false, true} {
			body := &slowBody{ResponseRecorder: httptest.NewRecorder(), stalls: stalls, rest: strings.NewReader("{}")}
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost"+path, body)
			r.Header.Set("Content-Type", "application/json")
			if path != "/v1/commands" {
				r.Header.Set("Idempotency-Key", "k")
			}
			s.api.ServeHTTP(body, r)
			wait := time.Until(body.met)
			assert.Truef(t, wait > 0 && wait <= 5*time.Minute, "%s: the body is waited for for %s", path, wait)
			// After one that has not come the server would read on, to use the connection again.
			assert.NotEqualf(t, stalls, body.deadline.IsZero(), "%s: stalls, and the deadline after it is %s", path, body.deadline)
		}
	}
}
