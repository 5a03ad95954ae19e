package api_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/internal/await"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Who waits for something new is told nothing that came after his credential had ended.
func TestAWaitEndsWithItsCredential(t *testing.T) {
	var ends atomic.Int64 // of who waits, in nanoseconds since 1970
	taken := make(chan struct{})
	takenBack := func(c *api.Caller) { c.Ended = taken }
	endsSoon := func(c *api.Caller) { c.Until = time.Unix(0, ends.Load()) }
	var as atomic.Pointer[func(*api.Caller)]
	s := newServer(t, func(c *api.Config) {
		c.Identify = func(r *http.Request) (api.Caller, error) {
			caller, err := api.Loopback(r)
			if strings.Contains(r.Header.Get("Prefer"), "wait") {
				(*as.Load())(&caller)
			}
			return caller, err
		}
	})
	_, address := s.accepted("k")
	v := s.visit()
	tag := s.get(address).header.Get("ETag")
	for _, c := range []struct {
		name, path string
		headers    []string
		as         func(*api.Caller)
		happens    func()
	}{
		{"an event", "/v1/events?after=now", nil, endsSoon, func() { s.packed("1") }},
		{"a command", address, []string{"If-None-Match", tag}, endsSoon, func() { s.report(v, 10) }},
		{"a credential that is taken back", "/v1/events?after=now", nil, takenBack, func() { close(taken); s.packed("1") }},
	} {
		as.Store(&c.as)
		ends.Store(time.Now().Add(100 * time.Millisecond).UnixNano())
		got := later(func() answer { return s.get(c.path, append(c.headers, "Prefer", "wait=60")...) })
		s.waitForStreams(1)
		await.Eventually(t, "the credential has ended", func() bool { return time.Now().UnixNano() > ends.Load() })
		c.happens()
		a := <-got
		p := a.wantProblem(t, 401, workflow.Unauthorized)
		if !strings.Contains(p.Detail, "has ended") || !strings.Contains(a.header.Get("WWW-Authenticate"), `"expired"`) {
			t.Errorf("%s: %s %s", c.name, p.Detail, a.header)
		}
	}
	v.signed("Ida")
	await.Eventually(t, "it is delivered", func() bool {
		return read[api.CommandStatus](t, s.get(address)).Status == transitions.Succeeded
	})
}
