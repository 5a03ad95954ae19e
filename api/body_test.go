package api_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/api"
)

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
func TestABodyHasToArriveInTime(t *testing.T) {
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
