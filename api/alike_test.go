package api_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// everybody may do everything.
func everybody(*http.Request) (api.Caller, error) {
	return api.Caller{Tenant: "acme", Actor: "ann", Roles: []string{"*"}, Grants: auth.All()}, nil
}

// noTickets are none: whatever is asked of them panics.
type noTickets struct{ api.Tickets }

// What is refused before a handler is asked, every route refuses alike.
func TestEveryRouteRefusesAlike(t *testing.T) {
	defect := func() { panic("a defect") }
	post := func(verify func() (string, error)) func(*api.Config) {
		return func(c *api.Config) {
			c.Inbox = map[string]api.Consumer{"none": {Verify: func(http.Header, []byte) (string, error) { return verify() }}}
			c.Identify, c.Keys, c.Tickets = everybody, &lateKeys{}, noTickets{}
		}
	}
	good := func() (string, error) { return "id", nil }
	identified := func(code workflow.Code) func(*api.Config) {
		return func(c *api.Config) {
			c.Identify = func(*http.Request) (api.Caller, error) { return api.Caller{}, workflow.Errorf(code, "no") }
		}
	}
	private := func(r *api.Route) bool { return r.Grant != api.Public }
	for _, c := range []struct {
		code   workflow.Code
		config func(*api.Config)
		of     func(*api.Route) bool
		with   func(*api.Route, *http.Request)
	}{
		{workflow.Unavailable, identified(workflow.Unavailable), private, nil},
		{workflow.Unauthorized, identified(workflow.Unauthorized), private, nil},
		{workflow.Forbidden, identified(workflow.Forbidden), private, nil},
		{workflow.Internal, func(c *api.Config) {
			post(func() (string, error) { defect(); return "", nil })(c)
			c.Identify = func(*http.Request) (api.Caller, error) { defect(); return api.Caller{}, nil }
		}, func(r *api.Route) bool { return notWalked[r.Method+" "+r.Path+" 500"] == "" }, nil},
		{workflow.InvalidRequest, post(good), private, func(_ *api.Route, r *http.Request) { r.Header.Set("Pawl-Nothing", "1") }},
		{workflow.UnsupportedMedia, post(good), func(r *api.Route) bool { return r.Body != nil && r.Body.Media != nil },
			func(_ *api.Route, r *http.Request) {
				r.Header.Set("Content-Type", "text/plain")
				setBody(r, "{}")
			}},
	} {
		t.Run(string(c.code), func(t *testing.T) {
			g := newWithoutEngine(t, c.config)
			for _, r := range api.Routes() {
				if !c.of(&r) {
					continue
				}
				assert.Containsf(t, r.Codes, c.code, "%s %s does not decl", r.Method, r.Path)
				request := g.fill(&r)
				if c.with != nil {
					c.with(&r, request)
				}
				if g.send(request).wantProblem(t, c.code.Info().Status, c.code); t.Failed() {
					t.Fatalf("%s %s", r.Method, r.Path)
				}
			}
		})
	}
}

// No route reads more than it says.
func TestEveryRouteRefusesALongBody(t *testing.T) {
	g := newGuarded(t)
	all := g.with(auth.All().String())
	for _, r := range api.Routes() {
		if r.Body != nil && r.Grant != api.Public {
			request := g.fill(&r, all...)
			setBody(request, strings.Repeat(" ", int(r.Body.Limit(api.Limits{Body: 1 << 20, BulkBody: 16 << 20}))+1))
			if g.send(request).wantProblem(t, http.StatusRequestEntityTooLarge, workflow.TooLarge); t.Failed() {
				t.Fatalf("%s %s", r.Method, r.Path)
			}
		}
	}
}

// setBody gives a request another body.
func setBody(r *http.Request, text string) {
	r.ContentLength = int64(len(text))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }
	r.Body, _ = r.GetBody()
}

// Every route refuses a credential that holds all of its memory, operators included.
func TestEveryRouteHoldsMemory(t *testing.T) {
	const memory = 64 << 20
	g := newWithoutEngine(t, func(c *api.Config) { c.Identify, c.Limits.Memory = everybody, memory })
	body, rest := io.Pipe()
	defer rest.Close()
	open := make(chan struct{})
	// The server asks for the rest of the body when it begins to read it, for which it holds memory.
	ctx, cancel := context.WithCancel(t.Context())
	asked := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{Got100Continue: func() { close(open) }})
	large, err := http.NewRequestWithContext(asked, http.MethodPost, g.url+"/v1/commands?dry_run=true", body)
	require.NoError(t, err)
	large.Header.Set("Content-Type", "application/json")
	large.Header.Set("Expect", "100-continue")
	large.ContentLength = memory/4/4 - 8<<10 // with 32 KiB for the request, a quarter of the memory
	ended := make(chan error, 1)
	go func() {
		response, err := http.DefaultTransport.RoundTrip(large)
		if err == nil {
			err = response.Body.Close()
		}
		ended <- err
	}()
	select {
	case <-open:
	case err := <-ended:
		t.Fatalf("not open: %v", err)
	}
	var refused []<-chan answer
	for _, r := range api.Routes() {
		if r.Grant != api.Public {
			refused = append(refused, later(func() answer { return g.send(g.fill(&r)) }))
		}
	}
	for _, a := range refused { // each waited for a moment
		got := <-a
		got.wantProblem(t, 429, workflow.RateLimited)
		assert.NotEqual(t, "", got.header.Get("Retry-After"), "it does not say when")
	}
	cancel()
	rest.Close()
	<-ended
}

// A node without memory for one request still answers health checks, and refuses documents as it refuses everything else.
func TestHealthChecksHoldNoMemory(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(c *api.Config) { c.Limits.Memory, c.Limits.Body, c.Limits.BulkBody = 132<<10, 1, 1 })
	refused := map[string]<-chan answer{}
	for _, r := range api.Routes() {
		if r.Grant == api.Public && r.Body == nil {
			refused[r.Path] = later(func() answer { return s.get(r.Path) })
		}
	}
	for path, a := range refused {
		if got := <-a; path == "/healthz" || path == "/readyz" {
			got.want(t, http.StatusOK)
		} else {
			got.wantProblem(t, 503, workflow.Overloaded)
		}
	}
}

// A client with the current representation gets 304, and only a requested representation is sent.
func TestEveryRouteNegotiates(t *testing.T) {
	g := newGuarded(t)
	all := g.with(auth.All().String())
	for _, r := range api.Routes() {
		if slices.ContainsFunc(r.Answers, func(a api.Answer) bool { return a.Status == 304 }) {
			first := g.send(g.fill(&r, all...))
			first.want(t, 200)
			g.send(g.fill(&r, append(all, "If-None-Match", first.header.Get("ETag"))...)).want(t, 304)
		}
		if slices.Contains(r.Codes, workflow.NotAcceptable) {
			g.send(g.fill(&r, append(all, "Accept", "image/png")...)).wantProblem(t, 406, workflow.NotAcceptable)
		}
	}
}

// A tag confirms an answer only to a caller who would get the same bytes: not in another tenant, and not to a caller who sees less.
func TestETagsConfirmOnlyTheSameAnswer(t *testing.T) {
	g := newGuarded(t)
	all := auth.All().String()
	// Both tenants have an instance with the same business key, and a command with the same scope and key.
	other := by(g.token("other", all))
	g.post("/v1/workflows/parcel/label", "k", `{"to":"Graz","label":"L-1"}`, other...).want(t, http.StatusCreated)
	mine, theirs := g.instance, transitions.InstanceID("other", "parcel", "L-1")
	for _, r := range api.Routes() {
		if !slices.ContainsFunc(r.Answers, func(a api.Answer) bool { return a.Status == 304 }) {
			continue
		}
		g.instance = mine
		first := g.send(g.fill(&r, g.with(all)...))
		tag, vary := first.header.Get("ETag"), strings.Join(first.header.Values("Vary"), ", ")
		assert.Truef(t, first.status == 200 && first.header.Get("Cache-Control") == "private, no-cache" &&
			strings.Contains(vary, "Authorization") && strings.Contains(vary, "Cookie") && strings.Contains(vary, "Pawl-Tenant"),
			"%s: %d %v", r.Path, first.status, first.header)
		for _, c := range []struct {
			instance uuid.UUID
			headers  []string
		}{{theirs, other}, {mine, g.with("read")}} {
			g.instance = c.instance
			same := string(g.send(g.fill(&r, c.headers...)).body) == string(first.body)
			asked := g.send(g.fill(&r, append(slices.Clone(c.headers), "If-None-Match", tag)...))
			assert.Falsef(t, asked.status == http.StatusNotModified && !same, "%s: another answer is confirmed", r.Path)
		}
	}
}

// Nothing is found of what is not there.
func TestEveryRouteOfUnknownInstance(t *testing.T) {
	g := newGuarded(t)
	all := g.with(auth.All().String())
	g.instance = uuid.New()
	for _, r := range api.Routes() {
		if strings.Contains(r.Path, "{id}") {
			g.send(g.fill(&r, all...)).wantProblem(t, 404, workflow.InstanceNotFound)
		}
	}
}
