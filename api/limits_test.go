package api_test

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/api/internal/streamtest"
	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/workflow"
)

// A tenant has so many requests open, each of its credentials half as many, and its operators get in all the same.
func TestOpenRequestsAreLimited(t *testing.T) {
	s := newServer(t, func(c *api.Config) { c.Limits.Open = 4 })
	customer := func(actor string) []string { return []string{"Pawl-Actor", actor, "Pawl-Roles", "customer"} }
	var ends []context.CancelFunc
	for _, actor := range []string{"ann", "ann", "ben", "ben"} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ends = append(ends, cancel)
		response, err := smallClient.Do(s.request(ctx, http.MethodGet, "/v1/events", nil, append(customer(actor), "Accept", "text/event-stream")...))
		require.NoError(t, err)
		defer response.Body.Close()
		require.Equalf(t, 200, response.StatusCode, "%s: %s", actor, response.Status)
		if actor == "ann" && len(ends) == 2 { // the tenant has room, and ann has none
			s.get("/v1/workflows", customer("ann")...).wantProblem(t, 429, workflow.RateLimited)
			s.get("/v1/workflows", customer("ben")...).want(t, 200)
		}
	}
	for _, path := range []string{"/v1/workflows", "/v1/stream"} {
		refused := s.get(path, customer("cleo")...)
		refused.wantProblem(t, 429, workflow.RateLimited)
		assert.NotEqual(t, "", refused.header.Get("Retry-After"), "it does not say when")
	}
	s.get("/v1/workflows").want(t, 200) // for an operator
	s.get("/v1/workflows", append(customer("cleo"), "Pawl-Tenant", "other")...).want(t, 200)
	s.get("/healthz").want(t, 200)
	ends[0]()
	await.Eventually(t, "there is room again", func() bool { return s.get("/v1/workflows", customer("cleo")...).status == 200 })
}

// A reader that does not read ends by a deadline, of an answer of Pawl and of a route of the program.
func TestStalledReaderIsCut(t *testing.T) {
	const size = 8 * streamtest.SocketsHold
	failed := make(chan error, 4)
	large := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		_, err := w.Write(make([]byte, size))
		failed <- err
	})
	s := newServer(t, func(c *api.Config) {
		c.Limits.WriteTime = 300 * time.Millisecond
		c.Metrics, c.Routes = large, map[string]http.Handler{"GET /large": large}
	})
	for _, path := range []string{"/metrics", "/large"} {
		socket, err := streamtest.Dial(t.Context(), "tcp", s.url[len("http://"):])
		require.NoError(t, err)
		defer func() { _ = socket.Close() }()
		_, err = io.WriteString(socket, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\n\r\n")
		require.NoError(t, err)
		assert.ErrorIs(t, await.Receive(t, path+" ends", failed), os.ErrDeadlineExceeded, path)
		assert.Len(t, s.get(path).body, size, "a reader that reads gets all")
		assert.NoError(t, await.Receive(t, path+" is read", failed))
	}
}

// The same over HTTP/2, where it is one stream of a connection that others use.
func TestStalledReaderIsCut_HTTP2(t *testing.T) {
	t.Parallel()
	failed := make(chan error, 1)
	s := newServer(t, func(c *api.Config) {
		c.Limits.WriteTime = 2 * time.Second
		c.Routes = map[string]http.Handler{"GET /large": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, err := w.Write(make([]byte, 64<<20)) // more than a client takes before it is read
			failed <- err
		})}
	})
	over := httptest.NewUnstartedServer(s.api)
	over.EnableHTTP2 = true
	over.StartTLS()
	defer over.Close()
	get := func(path string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, over.URL+path, nil)
		require.NoError(t, err)
		response, err := over.Client().Do(r)
		require.NoError(t, err)
		return response
	}
	stalled := get("/large")
	defer stalled.Body.Close()
	err := await.Receive(t, "the stream ends", failed)
	assert.Truef(t, err != nil && stalled.ProtoMajor == 2, "%v, %s", err, stalled.Proto)
	other := get("/healthz")
	defer other.Body.Close()
	assert.Truef(t, other.StatusCode == 200 && other.ProtoMajor == 2, "%s %s", other.Proto, other.Status)
}

func TestTenantRate_RetryAfter(t *testing.T) {
	s := newServer(t, func(c *api.Config) { c.Limits.Rate, c.Limits.Burst = 0.01, 5 })
	pack := func(key string, headers ...string) answer {
		t.Helper()
		return s.post("/v1/workflows/parcel/pack", key, `{"to":"Wien"}`, headers...)
	}
	pack("1").want(t, 201)
	pack("1").want(t, 201)                  // a replay is a command, too
	pack("3", "If-Match", "x").want(t, 400) // what is malformed is none
	item := `{"workflow":"parcel","transition":"pack","key":"b","payload":{"to":"Wien"}}`
	s.bulk("application/json", "["+item+","+item+"]", "").want(t, 200)
	before := s.rows()
	a := s.bulk("application/json", "["+item+","+item+"]", "") // one is left
	a.wantProblem(t, 429, workflow.RateLimited)
	after, err := strconv.Atoi(a.header.Get("Retry-After"))
	assert.Truef(t, err == nil && after >= 2 && after <= 100, "Retry-After %q", a.header.Get("Retry-After"))
	s.post("/v1/workflows/parcel/pack?dry_run=true", "5", `{"to":"Wien"}`).want(t, 201)
	pack("6").wantProblem(t, 429, workflow.RateLimited)
	s.post("/v1/workflows/parcel/pack?dry_run=true", "6", `{"to":"Wien"}`).wantProblem(t, 429, workflow.RateLimited)
	if after := s.rows(); after["command"] != before["command"] {
		t.Errorf("rows before %v, after %v", before, after)
	}
	s.bulk("application/json", "["+strings.Repeat(item+",", 5)+item+"]", "").wantProblem(t, 413, workflow.TooLarge) // it never could
	pack("1", "Pawl-Tenant", "other").want(t, 201)
	s.get("/v1/instances").want(t, 200) // reading is no command
}

// The limit of a credential applies in addition to its tenant's; a request that one refuses does not count against the other.
func TestCredentialRate_Headers(t *testing.T) {
	s := newServer(t, func(c *api.Config) {
		c.Limits.Rate, c.Limits.Burst, c.Limits.CredentialRate, c.Limits.CredentialBurst = 0.01, 4, 0.001, 2
	})
	pack := func(actor, tenant, credential string) answer {
		t.Helper()
		a := s.post("/v1/workflows/parcel/pack?dry_run=true", "k", `{"to":"Wien"}`, "Pawl-Actor", actor)
		if got, want := a.header.Values("RateLimit-Policy"), []string{`"tenant";q=4;w=400`, `"credential";q=2;w=2000`}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		got := strings.Join(a.header.Values("RateLimit"), ", ")
		assert.Truef(t, strings.Contains(got, `"tenant";r=`+tenant+`;t=`) && strings.Contains(got, `"credential";r=`+credential+`;t=`),
			"%s: %s, want %s and %s", actor, got, tenant, credential)
		return a
	}
	pack("ann", "3", "1").want(t, 201)
	pack("ann", "2", "0").want(t, 201)
	refused := pack("ann", "2", "0")
	assert.Contains(t, refused.wantProblem(t, 429, workflow.RateLimited).Detail, "the credential sends")
	after, err := strconv.Atoi(refused.header.Get("Retry-After"))
	assert.Truef(t, err == nil && after >= 100 && after <= 1000, "Retry-After %q", refused.header.Get("Retry-After"))
	pack("bob", "1", "1").want(t, 201)
	pack("eve", "0", "1").want(t, 201)
	assert.Contains(t, pack("eve", "0", "1").wantProblem(t, 429, workflow.RateLimited).Detail, "the tenant sends")
}

// A caller gets no more by another credential: the rate is that of the actor.
func TestCredentialRateIsOfEachActor(t *testing.T) {
	callers := map[string]api.Caller{
		"ann's key":           {Actor: "ann", Proof: auth.Proof{Kind: auth.APIKey, By: "k1"}},
		"ann's other key":     {Actor: "ann", Proof: auth.Proof{Kind: auth.APIKey, By: "k2"}},
		"ann's token":         {Actor: "ann", Proof: auth.Proof{Kind: auth.JWT, By: "https://idp.example"}},
		"ann's ticket":        {Actor: "ann", Proof: auth.Proof{Kind: auth.Ticket, By: "key k3 by gateway"}},
		"bob's key":           {Actor: "bob", Proof: auth.Proof{Kind: auth.APIKey, By: "k4"}},
		"ann's key elsewhere": {Actor: "ann", Tenant: "acme", Proof: auth.Proof{Kind: auth.APIKey, By: "k5"}},
	}
	s := newServer(t, func(c *api.Config) {
		c.Limits.CredentialRate, c.Limits.CredentialBurst = 0.001, 3
		c.Identify = func(r *http.Request) (api.Caller, error) {
			caller := callers[r.Header.Get("Authorization")]
			caller.Grants, caller.Roles = auth.Grants{{Right: auth.Submit}}, []string{"*"}
			return caller, nil
		}
	})
	for _, c := range []struct {
		credential string
		status     int
	}{{"ann's key", 201}, {"ann's other key", 201}, {"ann's token", 201}, {"ann's ticket", 429}, {"ann's key", 429}, {"bob's key", 201},
		{"ann's key elsewhere", 201}} {
		a := s.post("/v1/workflows/parcel/pack?dry_run=true", "k", `{"to":"Wien"}`, "Authorization", c.credential)
		assert.Equalf(t, c.status, a.status, "%s %s", c.credential, a.body)
	}
}

func TestNewChecksConfig(t *testing.T) {
	verify := func(http.Header, []byte) (string, error) { return "", nil }
	inbox := func(name string, c api.Consumer) api.Config {
		return api.Config{Inbox: map[string]api.Consumer{name: c}}
	}
	configs := map[string][]api.Config{
		"Stream.MaxLag":         {{Stream: api.Stream{MaxLag: -1}}},
		"Limits.Memory":         {{Limits: api.Limits{Memory: 1 << 20}}},
		"Limits.Rate":           {{Limits: api.Limits{Rate: -1}}, {Limits: api.Limits{Rate: math.NaN()}}, {Limits: api.Limits{Rate: math.Inf(1)}}},
		"Limits.CredentialRate": {{Limits: api.Limits{CredentialRate: -1}}},
		"Burst":                 {{Limits: api.Limits{Rate: 1, Burst: -1}}, {Limits: api.Limits{CredentialBurst: -1}}},
		"consumer":              {inbox("", api.Consumer{Verify: verify}), inbox(strings.Repeat("x", 250), api.Consumer{Verify: verify})},
		"Config.Inbox":          {inbox("none", api.Consumer{}), inbox("post", api.Consumer{Verify: verify, Tenant: "\x00"})},
		"kept for": {inbox("post", api.Consumer{Verify: verify, Keep: -1}),
			inbox("post", api.Consumer{Verify: verify, Keep: 4000 * 24 * time.Hour})},
	}
	for _, origin := range []string{"*", "null", "", "shop.example", "https://*.example", "https://shop.example/", "https://shop.example/a",
		"ftp://a", "https://Shop.example", "https://a@shop.example", "https://", "https://a?b"} {
		configs["Origins"] = append(configs["Origins"], api.Config{Origins: []string{origin}})
	}
	for want, patterns := range map[string][]string{
		"Pawl's own": {"/v1/mine", "GET /v1/workflows", "/v1", "/v1/{rest...}", "POST example.com/v1/", "/healthz", "GET /readyz", "/metrics"},
		"shop":       {"shop"}, "duplicate": {"GET /{x}/{x}"}, `""`: {""},
	} {
		for _, p := range patterns {
			configs[want] = append(configs[want], api.Config{Routes: map[string]http.Handler{p: says("mine")}})
		}
	}
	configs["conflicts"] = []api.Config{{Routes: map[string]http.Handler{"/a/{x}": says("1"), "/{x}/a": says("2")}}}
	configs["/a"] = []api.Config{{Routes: map[string]http.Handler{"/a": nil}}}
	for want, all := range configs {
		for i, c := range all {
			_, err := api.New(&engine.Engine{}, c)
			assert.ErrorContains(t, err, want, fmt.Sprint(want, i))
		}
	}
	_, err := api.New(nil, api.Config{})
	assert.ErrorContains(t, err, "engine")
}

func TestPublicURLIsChecked(t *testing.T) {
	t.Parallel()
	for text, good := range map[string]bool{
		"": true, "https://host": true, "https://host/": true, "https://host:8443/a/b": true, "http://localhost:8080/pawl/": true,
		"https://host/A.b~c_d-e": true, "host/pawl": false, "ftp://host": false, "https://": false, "https://u@host/pawl": false,
		"https://host/pawl?x": false, "https://host/pawl#x": false, "https://host/a//b": false, "https://host/../b": false,
		"https://host/a%2Fb": false, "https://host/a b": false, "https://host/v1": false, "https://host/docs/x": false,
		"https://host/healthz": false, "https://Host/pawl": false,
	} {
		err := api.CheckPublicURL(text)
		assert.Equalf(t, good, err == nil, "%q: %v", text, err)
	}
}
