package api_test

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/workflow"
)

// A waiting request returns no event that came after its credential expired.
func TestWaitEndsWithCredential(t *testing.T) {
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
		assert.Truef(t, strings.Contains(p.Detail, "has ended") && strings.Contains(a.header.Get("WWW-Authenticate"), `"expired"`),
			"%s: %s %s", c.name, p.Detail, a.header)
	}
	v.signed("Ida")
}

// A request that waits for its own command's end gets the status at acceptance.
func TestCommandWaitEndsWithCredential(t *testing.T) {
	taken := make(chan struct{})
	s := newServer(t, func(c *api.Config) {
		c.Identify = func(r *http.Request) (api.Caller, error) {
			caller, err := api.Loopback(r)
			if r.Header.Get("Prefer") != "" {
				caller.Ended = taken
			}
			return caller, err
		}
	})
	id := s.booked()
	item := `[{"transition":"deliver","instance":"` + s.booked().String() + `","key":"k","payload":{"door":3}}]`
	one := later(func() answer { return s.deliver(id, "k", "Prefer", "wait=60") })
	many := later(func() answer {
		return s.do(http.MethodPost, "/v1/commands", []byte(item), "Content-Type", "application/json", "Prefer", "wait=60")
	})
	s.waitForStreams(2)
	visits := []visit{s.visit(), s.visit()}
	for _, v := range visits {
		s.report(v, 10)
	}
	close(taken)
	a := <-one
	a.want(t, http.StatusAccepted)
	inBulk := read[[]wire.BulkResult](t, <-many)[0]
	for _, body := range [][]byte{a.body, inBulk.Body} {
		assert.NotContainsf(t, string(body), "percent", "it is told how it goes on: %s", body)
	}
	for _, v := range visits {
		v.signed("Ida")
	}
}

// A request that starts in time, and whose body arrives after its credential expired, has no effect.
func TestCredentialExpiresBeforeBody(t *testing.T) {
	var taken chan struct{}
	identified := make(chan struct{})
	s := newServer(t, func(c *api.Config) {
		c.Identify = func(r *http.Request) (api.Caller, error) {
			caller, err := api.Loopback(r)
			caller.Ended = taken
			identified <- struct{}{}
			return caller, err
		}
	})
	for path, text := range map[string]string{
		"/v1/workflows/parcel/pack": `{"to":"Graz","weight":1}`,
		"/v1/commands":              `[{"workflow":"parcel","transition":"pack","key":"k","payload":{"to":"Graz","weight":1}}]`,
		"/v1/tickets":               `{"grants":["read:parcel"]}`,
	} {
		taken = make(chan struct{})
		body, rest := io.Pipe()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+path, body)
		require.NoError(t, err)
		r.Header.Set("Content-Type", "application/json")
		if path == "/v1/workflows/parcel/pack" {
			r.Header.Set("Idempotency-Key", "k")
		}
		got := later(func() answer { return s.send(r) })
		await.Receive(t, "who asks is known", identified)
		close(taken)
		_, _ = io.WriteString(rest, text)
		_ = rest.Close()
		a := await.Receive(t, "the answer", got)
		a.wantProblem(t, http.StatusUnauthorized, workflow.Unauthorized)
		assert.Containsf(t, a.header.Get("WWW-Authenticate"), `"expired"`, "%s: %s", path, a.header)
	}
	rows := s.rows()
	assert.True(t, rows["instance"] <= 0 && rows["command"] <= 0, rows)
}

// An Identify that names no tenant does not name all of them.
func TestIdentifyDefaultsToDefaultTenant(t *testing.T) {
	s := newServer(t, func(c *api.Config) {
		c.Identify = func(r *http.Request) (api.Caller, error) {
			caller, err := api.Loopback(r)
			if caller.Tenant == "default" {
				caller.Tenant = ""
			}
			return caller, err
		}
	})
	s.post("/v1/workflows/parcel/pack", "k", `{"to":"Graz","weight":1}`, "Pawl-Tenant", "other").want(t, 201)
	assert.NotContains(t, string(s.get("/v1/counts").body), "parcel")
	s.packed("1")
	assert.Contains(t, string(s.get("/v1/counts").body), "parcel")
}
