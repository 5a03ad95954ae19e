package api_test

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/workflow"
)

// badValues returns values that a parameter must refuse.
func badValues(p *api.Param) []string {
	switch p.Kind {
	case api.Known:
		return nil
	case api.Integer:
		return []string{"\x00", "x", strconv.FormatInt(p.Min-1, 10), "+1", "1.5", "9223372036854775808"}
	case api.Boolean:
		return []string{"1", "TRUE", "\xff"}
	case api.Time:
		return []string{"tomorrow", "2030-01-31", "2030-02-30T00:00:00Z", "2030-01-31T12:00:00 01:00", "\x00"}
	case api.UUID:
		return []string{"x", uuid.Nil.String(), "{" + uuid.NewString() + "}", "\x00"}
	case api.Position:
		return []string{"later", "-1", "9223372036854775808"}
	}
	values := []string{"\x00", "\xff", strings.Repeat("x", max(255, int(p.Max))+1)}
	if p.Values != nil {
		values = append(values, "other")
	}
	return values
}

// Each route refuses undeclared parameters and values that their kinds do not allow, before a handler runs.
func TestEveryParameterIsChecked(t *testing.T) {
	g := newWithoutEngine(t, func(c *api.Config) { c.Identify, c.Keys = everybody, &lateKeys{} })
	codes := map[api.Kind]workflow.Code{api.Scope: workflow.ScopeInvalid, api.Key: workflow.KeyInvalid}
	for _, r := range api.Routes() {
		if r.Grant == api.Public {
			continue
		}
		refused := func(request *http.Request, code workflow.Code) {
			t.Helper()
			if g.send(request).wantProblem(t, code.Info().Status, code); t.Failed() {
				t.Fatalf("%s %s", r.Method, request.URL)
			}
		}
		query := func(name string, values ...string) {
			t.Helper()
			request := g.fill(&r)
			all := request.URL.Query()
			all[name] = values
			request.URL.RawQuery = all.Encode()
			refused(request, workflow.InvalidRequest)
		}
		if !r.AnyQuery {
			query("unknown", "1")
		}
		for _, p := range r.Params {
			for _, value := range badValues(&p) {
				switch name := strings.TrimSuffix(p.Name, "."); p.In {
				case api.InPath:
					request := g.fill(&r)
					path, err := url.Parse(g.url + g.path(&r, p.Name, value))
					require.NoError(t, err)
					request.URL = path
					refused(request, cmp.Or(codes[p.Kind], workflow.InvalidRequest))
				case api.InQuery:
					query(strings.Replace(p.Name, name+".", name+".x", 1), value)
				}
			}
			if p.In == api.InQuery && p.Many == 0 {
				query(p.Name, "1", "2")
			}
			if p.Needs != "" {
				query(p.Name, "x")
			}
		}
	}
}

// Each JSON body of an operation is checked before anything is written.
func TestEveryBodyIsChecked(t *testing.T) {
	g := newGuarded(t, withPost)
	before := g.rows()
	for _, r := range api.Routes() {
		if r.Grant == api.Public || r.Body == nil || r.Body.Type == nil || r.Body.Type.Kind() != reflect.Struct {
			continue
		}
		bodies := []string{"x", " ", "null", "[]", "7", "{", "{}{}", `{"unknown":1}`, `{"\u0000":1}`, `{"a":"` + "\xff" + `"}`}
		for f := range r.Body.Type.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			bodies = append(bodies, fmt.Sprintf(`{%q:1,%[1]q:1}`, name))
			if f.Type != reflect.TypeFor[jsontext.Value]() {
				bodies = append(bodies, fmt.Sprintf(`{%q:[[]]}`, name))
			}
		}
		for _, body := range bodies {
			request := g.fill(&r, g.with(auth.All().String())...)
			setBody(request, body)
			if g.send(request).wantProblem(t, 400, workflow.InvalidRequest); t.Failed() {
				t.Fatalf("%s %s %s", r.Method, r.Path, body)
			}
		}
		for _, header := range []string{"If-Match", "Pawl-Not-Before", "Pawl-Reason", "Pawl-Replay-For"} {
			if !slices.ContainsFunc(r.Params, func(p api.Param) bool { return p.Name == header }) {
				g.send(g.fill(&r, append(g.with(auth.All().String()), header, `"1"`)...)).wantProblem(t, 400, workflow.InvalidRequest)
			}
		}
	}
	assert.Equal(t, before, g.rows(), "rows")
}

func TestPayloadIsChecked(t *testing.T) {
	s := newServer(t)
	stamp := "/v1/instances/" + s.packed("1").String() + "/stamp"
	before := s.rows()
	for name, body := range map[string]string{
		"null": `null`, "array": `[]`, "open": `{"to":"x"`, "two values": `{"to":"x"}{"to":"y"}`, "no JSON": `to=x`,
		"deep": `{"to":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + `}`, "1e400": `{"to":"x","weight":1e400}`,
		"NUL": `{"to":"\u0000"}`, "invalid UTF-8": "{\"to\":\"\xff\"}", "duplicate": `{"to":"x","t\u006f":"y"}`,
		"unknown field": `{"to":"x","colour":"red"}`, "wrong type": `{"to":7}`, "byte order mark": "\xef\xbb\xbf{\"to\":\"x\"}",
	} {
		for _, path := range []string{"/v1/workflows/parcel/pack", "/v1/workflows/parcel/pack?dry_run=true", stamp} {
			s.post(path, uuid.NewString(), body).wantProblem(t, 400, workflow.InvalidPayload)
		}
		require.Falsef(t, t.Failed(), "with a body that is: %s", name)
	}
	large := `{"to":"` + strings.Repeat("x", 1<<20) + `"}`
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+stamp, strings.NewReader(large))
	require.NoError(t, err)
	r.ContentLength = -1 // so that the length is known at its end only
	r.Header = http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": {"k"}}
	s.send(r).wantProblem(t, 413, workflow.TooLarge)
	assert.Equal(t, before, s.rows(), "rows")
}

// badRequests are requests that no kind of a parameter excludes, for a server with the instance {id}.
var badRequests = []struct {
	name, method, path string
	headers            []string
	code               workflow.Code
}{
	{"no key", "POST", "/v1/workflows/parcel/pack", nil, workflow.KeyMissing},
	{"empty quoted key", "POST", "/v1/workflows/parcel/pack", []string{"Idempotency-Key", `""`}, workflow.KeyMissing},
	{"two keys", "POST", "/v1/workflows/parcel/pack", keyed("Idempotency-Key", "b"), workflow.KeyInvalid},
	{"long key", "POST", "/v1/workflows/parcel/pack", []string{"Idempotency-Key", strings.Repeat("k", 256)}, workflow.KeyInvalid},
	{"empty scope", "POST", "/v1/workflows/parcel/pack", keyed("Idempotency-Scope", ""), workflow.ScopeMissing},
	{"long scope", "POST", "/v1/workflows/parcel/pack", keyed("Idempotency-Scope", strings.Repeat("s", 256)), workflow.ScopeInvalid},
	{"reserved scope", "POST", "/v1/workflows/parcel/pack", keyed("Idempotency-Scope", "inbox:post"), workflow.ScopeInvalid},
	{"reserved actor", "POST", "/v1/workflows/parcel/pack", keyed("Pawl-Actor", "inbox:post"), workflow.InvalidRequest},
	{"no key of an operation", "POST", "/v1/ops/instances/{id}/pause", nil, workflow.KeyMissing},
	{"reserved scope of an operation", "POST", "/v1/ops/instances/{id}/pause", keyed("Idempotency-Scope", "pawl:x"), workflow.ScopeInvalid},
	{"no target's scope", "POST", "/v1/ops/commands/retry", keyed(), workflow.ScopeMissing},
	{"cancelled reserved scope", "DELETE", "/v1/commands/pawl:timer:{id}:late/1", nil, workflow.ScopeInvalid},
	{"long tenant", "GET", "/v1/instances", []string{"Pawl-Tenant", strings.Repeat("t", 65)}, workflow.InvalidRequest},
	{"two tenants", "GET", "/v1/instances", []string{"Pawl-Tenant", "a", "Pawl-Tenant", "b"}, workflow.InvalidRequest},
	{"tenant in Latin-1", "GET", "/v1/instances", []string{"Pawl-Tenant", "\xe4"}, workflow.InvalidRequest},
	{"long actor", "GET", "/v1/instances", []string{"Pawl-Actor", strings.Repeat("t", 256)}, workflow.InvalidRequest},
	{"many roles", "GET", "/v1/instances", []string{"Pawl-Roles", strings.Repeat("r,", 65)}, workflow.InvalidRequest},
	{"a misspelt header", "GET", "/v1/instances", []string{"Pawl-Role", "porter"}, workflow.InvalidRequest},
	{"bad If-Match", "POST", "/v1/instances/{id}/stamp", keyed("If-Match", "7"), workflow.InvalidRequest},
	{"bad time", "POST", "/v1/instances/{id}/stamp", keyed("Pawl-Not-Before", "soon"), workflow.InvalidRequest},
	{"a transition like a path", "POST", "/v1/workflows/parcel/..%2fpack", keyed(), workflow.TransitionNotFound},
	{"no key in the path", "GET", "/v1/commands/s/", nil, workflow.KeyMissing},
	{"no such command", "DELETE", "/v1/commands/s/nothing", nil, workflow.CommandNotFound},
	{"unknown attribute", "GET", "/v1/instances?workflow=parcel&attr.colour=red", nil, workflow.InvalidRequest},
	{"a state twice", "GET", "/v1/instances?state=a&state=a", nil, workflow.InvalidRequest},
	{"the zero time", "GET", "/v1/instances?updated_after=0001-01-01T00:00:00Z", nil, workflow.InvalidRequest},
	{"an empty interval", "GET", "/v1/instances?created_after=2026-01-31T12:00:00Z&created_before=2026-01-31T12:00:00Z", nil,
		workflow.InvalidRequest},
	{"cursor of the other order", "GET", "/v1/instances?order=updated&cursor=AQAAAAAAAAAAAAAAAAAAAAA", nil, workflow.InvalidRequest},
	{"cursor of another list", "GET", "/v1/ops/stuck?cursor=AQGTaw56bHAAgAAAAAAAAAE", nil, workflow.InvalidRequest},
	{"truncated cursor", "GET", "/v1/ops/inbox?cursor=BQAA", nil, workflow.InvalidRequest},
	{"counts of no workflow", "GET", "/v1/counts?workflow=nothing", nil, workflow.WorkflowNotFound},
	{"counts of all tenants", "GET", "/v1/counts?all_tenants=true", []string{"Pawl-Roles", "operator"}, workflow.Forbidden},
	{"verify no instance", "GET", "/v1/ops/verify?instance=01936b0e-0000-7000-8000-000000000000", nil, workflow.InstanceNotFound},
	{"past, twice", "GET", "/v1/instances/{id}?version=1&at=2030-01-31T12:00:00Z", nil, workflow.InvalidRequest},
	{"past, version beyond", "GET", "/v1/instances/{id}?version=9", nil, workflow.InstanceNotFound},
	{"past of no workflow", "GET", "/v1/workflows/nothing/keys/none?version=1", nil, workflow.WorkflowNotFound},
	{"after the end of the log", "GET", "/v1/events?after=9223372036854775807", nil, workflow.InvalidRequest},
	{"limit of a stream", "GET", "/v1/events?limit=5", []string{"Accept", "text/event-stream"}, workflow.InvalidRequest},
	{"last event is a word", "GET", "/v1/events", []string{"Accept", "text/event-stream", "Last-Event-ID", "x"}, workflow.InvalidRequest},
	{"last event after the end", "GET", "/v1/events", []string{"Accept", "text/event-stream", "Last-Event-ID", "99999"},
		workflow.InvalidRequest},
	{"last status is a word", "GET", "/v1/commands/s/k", []string{"Accept", "text/event-stream", "Last-Event-ID", "007"},
		workflow.InvalidRequest},
	{"stream of no command", "GET", "/v1/commands/s/k", []string{"Accept", "text/event-stream"}, workflow.CommandNotFound},
	{"no WebSocket", "GET", "/v1/stream", nil, workflow.InvalidRequest},
	{"no such sink", "POST", "/v1/ops/sinks/nothing/pause", nil, workflow.NotFound},
	{"no such consumer", "POST", "/v1/inbox/nobody", nil, workflow.NotFound},
	{"pause no such workflow", "PUT", "/v1/ops/paused/nothing", nil, workflow.WorkflowNotFound},
	{"resume no such workflow", "DELETE", "/v1/ops/paused/nothing", nil, workflow.WorkflowNotFound},
}

// keyed returns the headers of a command.
func keyed(more ...string) []string { return append([]string{"Idempotency-Key", "a"}, more...) }

func TestBadRequestsLeaveNoTrace(t *testing.T) {
	s := newServer(t)
	id := s.packed("1").String()
	before := s.rows()
	for _, c := range badRequests {
		t.Run(c.name, func(t *testing.T) {
			a := s.do(c.method, strings.ReplaceAll(c.path, "{id}", id), nil, c.headers...)
			a.wantProblem(t, c.code.Info().Status, c.code)
			assert.LessOrEqual(t, len(a.body), 2000, "bytes of the problem document")
		})
	}
	assert.Equal(t, before, s.rows(), "rows")
}
