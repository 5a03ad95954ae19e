package api_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/outbox/relay"
	"github.com/pawlhq/pawl/outbox/sink"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// shelf is a sink that keeps the ids of what it gets, and refuses stamps until
// it is told otherwise.
type shelf struct {
	mu    sync.Mutex
	ids   []string
	takes bool
}

// Deliver implements sink.Sink.
func (s *shelf) Deliver(ctx context.Context, events []transitions.Logged) []*sink.Failure {
	s.mu.Lock()
	defer s.mu.Unlock()
	return sink.InOrder(ctx, events, func(_ context.Context, e *transitions.Logged) *sink.Failure {
		if e.Transition == "stamp" && !s.takes {
			return sink.Fail(sink.Permanent, nil, "no stamps")
		}
		s.ids = append(s.ids, e.Tenant+" "+e.ID())
		return nil
	})
}

// Close implements sink.Sink.
func (s *shelf) Close(context.Context) error { return nil }

func (s *shelf) mended() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.takes = true
}

func (s *shelf) got() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(slices.Values(s.ids))
}

// withSinks is a server with the sinks "main", for all tenants, and "theirs", for the tenant "other" only; both tenants have a parcel with
// two stamps, which are dead letters of main.
func withSinks(t *testing.T) (s *server, main *shelf) {
	t.Helper()
	main = &shelf{}
	ofTransitions := func(e *transitions.Event) bool { return e.Ordinal == 0 } // stamps emit more
	s = newServerWith(t, []relay.Sink{
		{Name: "main", To: main, Wants: ofTransitions}, {Name: "theirs", To: &shelf{takes: true}, Tenants: []string{"other"},
			Wants: ofTransitions},
	})
	s.stamp(s.packed("1"), 2)
	a := s.post("/v1/workflows/parcel/pack", uuid.NewString(), `{"to":"Graz","weight":1}`, "Pawl-Tenant", "other")
	id := read[transitions.Result](t, a).Instance.String()
	for range 2 {
		s.post("/v1/instances/"+id+"/stamp", uuid.NewString(), `{}`, "Pawl-Tenant", "other").want(t, 200)
	}
	await.Eventually(t, "both sinks have everything", func() bool {
		list := read[api.SinkList](t, s.get("/v1/ops/sinks?all_tenants=true")).Sinks
		return len(list) == 2 && list[0].Lag == 0 && list[1].Lag == 0
	})
	return s, main
}

func TestAnOperatorSeesTheSinksOfHisTenant(t *testing.T) {
	s, _ := withSinks(t)
	list := read[api.SinkList](t, s.get("/v1/ops/sinks?all_tenants=true")).Sinks
	if len(list) != 2 || list[0].Name != "main" || list[0].DeadLetters != 4 || list[0].Parked != 4 || list[0].Delivered != 2 ||
		list[0].Node == "" ||
		list[0].LeaseEnds.IsZero() || list[1].Name != "theirs" || list[1].DeadLetters != 0 || list[1].Delivered != 3 {
		t.Errorf("all: %+v", list)
	}
	list = read[api.SinkList](t, s.get("/v1/ops/sinks", "Pawl-Roles", "operator")).Sinks
	assert.Truef(t, len(list) == 1 && list[0].Name == "main" && list[0].DeadLetters == 2 && list[0].Parked == 0 &&
		list[0].Delivered == 0 && list[0].Failure == "",
		"of the tenant: %+v", list)
	list = read[api.SinkList](t, s.get("/v1/ops/sinks", "Pawl-Tenant", "other", "Pawl-Roles", "operator")).Sinks
	assert.Truef(t, len(list) == 2 && slices.Equal(list[1].Tenants, []string{"other"}), "of the other: %+v", list)
	for _, path := range []string{"/v1/ops/sinks", "/v1/ops/sinks/main", "/v1/ops/sinks/main/dead"} {
		s.get(path+"?all_tenants=true", "Pawl-Roles", "operator").wantProblem(t, 403, workflow.Forbidden)
		s.get(path+"?all_tenants=true", "Pawl-Roles", "operator:all").want(t, 200)
		s.get(strings.Replace(path, "main", "theirs", 1)+"?all_tenants=false", "Pawl-Roles", "operator", "Pawl-Tenant", "other").want(t, 200)
	}
	for _, path := range []string{"/v1/ops/sinks/theirs", "/v1/ops/sinks/theirs/dead", "/v1/ops/sinks/nothing"} {
		s.get(path, "Pawl-Roles", "operator").wantProblem(t, 404, workflow.NotFound)
	}

	page := read[api.SinkPage](t, s.get("/v1/ops/sinks/main"))
	assert.Truef(t, len(page.Cursors) == 1 && page.Cursors[0].Tenant == "default" && page.Cursors[0].Position == 3 &&
		page.Cursors[0].Head == 3 && page.Next == "",
		"%+v", page)
	var tenants []string
	for query := "?all_tenants=true&limit=1"; query != ""; {
		page := read[api.SinkPage](t, s.get("/v1/ops/sinks/main"+query))
		for _, c := range page.Cursors {
			tenants = append(tenants, c.Tenant)
		}
		if query = ""; page.Next != "" {
			query = "?all_tenants=true&limit=1&cursor=" + url.QueryEscape(page.Next)
		}
	}
	assert.Truef(t, slices.Equal(tenants, []string{"default", "other"}), "cursors of %q", tenants)
}

// deadLetters lists dead letters page by page.
func (s *server) deadLetters(query string, headers ...string) (ids []string) {
	s.t.Helper()
	for cursor := ""; ; {
		page := read[api.DeadPage](s.t, s.get("/v1/ops/sinks/main/dead?limit=1"+query+cursor, headers...))
		for _, d := range page.Dead {
			ids = append(ids, fmt.Sprintf("%s %d-%d", d.Tenant, d.Position, d.Ordinal))
		}
		if page.Next == "" {
			return ids
		}
		cursor = "&cursor=" + url.QueryEscape(page.Next)
	}
}

func (s *server) operateSink(action, body string, headers ...string) answer {
	s.t.Helper()
	return s.do(http.MethodPost, "/v1/ops/sinks/main/"+action, []byte(body),
		append([]string{"Content-Type", "application/json"}, headers...)...)
}

func TestDeadLettersAreRedrivenAndSkipped(t *testing.T) {
	s, main := withSinks(t)
	changed := func(want int64, a answer) {
		t.Helper()
		if a.want(t, 200); read[api.DeadChange](t, a).Changed != want {
			t.Errorf("%s, want %d", a.body, want)
		}
	}
	got := s.deadLetters("&all_tenants=true")
	assert.Truef(t, slices.Equal(got, []string{"default 2-0", "default 3-0", "other 2-0", "other 3-0"}), "dead are %q", got)
	got = s.deadLetters("")
	assert.Truef(t, slices.Equal(got, []string{"default 2-0", "default 3-0"}), "dead of the tenant are %q", got)
	assert.Empty(t, s.deadLetters("&type=parcel.pack"), "dead of another type")
	one := read[api.DeadPage](t, s.get("/v1/ops/sinks/main/dead")).Dead[0]
	assert.Truef(t, one.Failure == "no stamps" && one.Kind == "permanent" && one.Status == inspect.DeadWaiting && one.Attempts == 1 &&
		one.Workflow == "parcel",
		"%+v", one)
	assert.Len(t, s.deadLetters("&status=waiting&workflow=parcel&type=parcel.stamp&instance="+one.Instance.String()), 2,
		"dead of the instance")

	changed(1, s.operateSink("skip", `{"position":3,"reason":"known"}`, "Pawl-Actor", "olga"))
	changed(0, s.operateSink("skip", `{"position":3,"reason":"known"}`, "Pawl-Actor", "olga")) // twice is no mistake
	skipped := read[api.DeadPage](t, s.get("/v1/ops/sinks/main/dead?status=skipped")).Dead
	assert.Truef(t, len(skipped) == 1 && skipped[0].By == "olga" && skipped[0].Reason == "known", "%+v", skipped)
	main.mended()
	changed(0, s.operateSink("redrive", `{"workflow":"delivery"}`))
	changed(0, s.operateSink("redrive", `{"instance":"`+one.Instance.String()+`"}`, "Pawl-Tenant", "other"))
	changed(1, s.operateSink("redrive", `{"type":"parcel.stamp"}`, "Pawl-Roles", "operator"))
	s.operateSink("redrive?all_tenants=true", `{"all":true}`, "Pawl-Roles", "operator").wantProblem(t, 403, workflow.Forbidden)
	changed(2, s.operateSink("redrive?all_tenants=true", `{"all":true}`))
	changed(1, s.operateSink("redrive", `{"all":true,"status":"skipped"}`))
	want := []string{"default 1-0", "default 2-0", "default 3-0", "other 1-0", "other 2-0", "other 3-0"}
	await.Eventually(t, "the sink has all in order", func() bool { return slices.Equal(main.got(), want) })
	await.Eventually(t, "four letters are redriven", func() bool { return len(s.deadLetters("&status=redriven&all_tenants=true")) == 4 })
}

func TestASinkIsPausedAndItsCursorMoved(t *testing.T) {
	s, main := withSinks(t)
	main.mended()
	s.operateSink("pause", `{"reason":"maintenance"}`, "Pawl-Roles", "operator").wantProblem(t, 403, workflow.Forbidden)
	s.operateSink("pause", `{"reason":"maintenance"}`, "Pawl-Actor", "olga").want(t, 204)
	s.operateSink("pause", "").want(t, 204) // twice is no mistake
	s.operateSink("forget", `{}`, "Pawl-Roles", "operator").wantProblem(t, 403, workflow.Forbidden)
	var info inspect.SinkInfo
	await.Eventually(t, "its node lets go of the sink", func() bool {
		info = read[api.SinkPage](t, s.get("/v1/ops/sinks/main")).Sink
		return info.Node == ""
	})
	assert.Truef(t, info.Paused != nil && info.Paused.By == "olga" && info.Paused.Reason == "maintenance", "%+v", info)
	s.packed("1")
	if info := read[api.SinkPage](t, s.get("/v1/ops/sinks/main")).Sink; info.Lag != 1 || info.Behind != 1 || info.Oldest.IsZero() {
		t.Errorf("%+v", info)
	}
	s.operateSink("move", `{"position":1}`, "Pawl-Actor", "olga", "Pawl-Roles", "operator").want(t, 204)
	s.operateSink("move", `{"position":2}`).wantProblem(t, 400, workflow.InvalidRequest) // forward, without a reason
	c := read[api.SinkPage](t, s.get("/v1/ops/sinks/main")).Cursors[0]
	assert.Truef(t, c.Position == 1 && c.Moved != nil && c.Moved.From == 3 && c.Moved.By == "olga", "%+v", c)
	s.operateSink("resume", "").want(t, 204)
	s.operateSink("resume", "").want(t, 204)
	want := []string{"default 1-0", "default 2-0", "default 3-0", "default 4-0", "other 1-0"}
	await.Eventually(t, "the sink has all in order", func() bool { return slices.Equal(main.got(), want) })
	s.operateSink("forget", `{}`).wantProblem(t, 400, workflow.InvalidRequest) // its node delivers
	got := s.deadLetters("&all_tenants=true")
	assert.Truef(t, slices.Equal(got, []string{"other 2-0", "other 3-0"}), "dead are %q", got)
}

const aSink = "/v1/ops/sinks/main"

var badSinks = []badCase{
	{"unknown parameter", "GET", "/v1/ops/sinks?tenant=x", "", nil, workflow.InvalidRequest},
	{"neither true nor false", "GET", "/v1/ops/sinks?all_tenants=1", "", nil, workflow.InvalidRequest},
	{"no such sink", "GET", "/v1/ops/sinks/nothing", "", nil, workflow.NotFound},
	{"NUL", "GET", "/v1/ops/sinks/%00", "", nil, workflow.InvalidRequest},
	{"invalid UTF-8", "POST", "/v1/ops/sinks/%ff/pause", `{}`, nil, workflow.InvalidRequest},
	{"long", "POST", "/v1/ops/sinks/" + strings.Repeat("s", 256) + "/redrive", `{"all":true}`, nil, workflow.InvalidRequest},
	{"limit 0", "GET", aSink + "?limit=0", "", nil, workflow.InvalidRequest},
	{"a cursor that is a word", "GET", aSink + "?cursor=next", "", nil, workflow.InvalidRequest},
	{"a cursor of another list", "GET", aSink + "/dead?cursor=A2RlZmF1bHQ", "", nil, workflow.InvalidRequest},
	{"a cursor to nowhere", "GET", aSink + "/dead?cursor=BAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAZGVmYXVsdA", "", nil,
		workflow.InvalidRequest},
	{"no such status", "GET", aSink + "/dead?status=dead", "", nil, workflow.InvalidRequest},
	{"NUL in a type", "GET", aSink + "/dead?type=%00", "", nil, workflow.InvalidRequest},
	{"instance is a word", "GET", aSink + "/dead?instance=x", "", nil, workflow.InvalidRequest},
	{"position of a list", "GET", aSink + "/dead?position=1", "", nil, workflow.InvalidRequest},
	{"no such action", "POST", aSink + "/drop", `{}`, nil, workflow.NotFound},
	{"put", "PUT", aSink + "/pause", `{}`, nil, workflow.MethodNotAllowed},
	{"a time", "POST", aSink + "/pause", `{}`, notBefore("2030-01-01T00:00:00Z"), workflow.InvalidRequest},
	{"a version", "POST", aSink + "/move", `{"position":0}`, []string{"If-Match", `"1"`}, workflow.InvalidRequest},
	{"a parameter", "POST", aSink + "/redrive?tenant=other", `{"all":true}`, nil, workflow.InvalidRequest},
	{"no JSON", "POST", aSink + "/pause", `reason`, nil, workflow.InvalidRequest},
	{"an array", "POST", aSink + "/redrive", `[]`, nil, workflow.InvalidRequest},
	{"more than a pause", "POST", aSink + "/pause", `{"until":"noon"}`, nil, workflow.InvalidRequest},
	{"NUL in a reason", "POST", aSink + "/pause", `{"reason":"\u0000"}`, nil, workflow.InvalidRequest},
	{"a long reason", "POST", aSink + "/skip", `{"all":true,"reason":"` + strings.Repeat("r", 4097) + `"}`, nil, workflow.InvalidRequest},
	{"a huge body", "POST", aSink + "/skip", `{"reason":"` + strings.Repeat("r", 1<<20) + `"}`, nil, workflow.TooLarge},
	{"another media type", "POST", aSink + "/skip", `{}`, []string{"Content-Type", "text/xml"}, workflow.UnsupportedMedia},
	{"pause no such sink", "POST", "/v1/ops/sinks/nothing/pause", `{}`, nil, workflow.NotFound},
	{"move no such sink", "POST", "/v1/ops/sinks/nothing/move", `{"position":0}`, nil, workflow.NotFound},
	{"move another tenant's sink", "POST", "/v1/ops/sinks/theirs/move", `{"position":0}`, nil, workflow.NotFound},
	{"redrive another tenant's sink", "POST", "/v1/ops/sinks/theirs/redrive", `{"all":true}`, nil, workflow.NotFound},
	{"move to nowhere", "POST", aSink + "/move", `{}`, nil, workflow.InvalidRequest},
	{"move before the log", "POST", aSink + "/move", `{"position":-1}`, nil, workflow.InvalidRequest},
	{"move past the log", "POST", aSink + "/move", `{"position":4,"reason":"r"}`, nil, workflow.InvalidRequest},
	{"move to a fraction", "POST", aSink + "/move", `{"position":1.5}`, nil, workflow.InvalidRequest},
	{"move to text", "POST", aSink + "/move", `{"position":"1"}`, nil, workflow.InvalidRequest},
	{"move past all", "POST", aSink + "/move", `{"position":9223372036854775808}`, nil, workflow.InvalidRequest},
	{"redrive the empty workflow", "POST", aSink + "/redrive", `{"workflow":""}`, nil, workflow.InvalidRequest},
	{"redrive the empty type", "POST", aSink + "/redrive", `{"type":""}`, nil, workflow.InvalidRequest},
	{"redrive the empty instance", "POST", aSink + "/redrive", `{"instance":""}`, nil, workflow.InvalidRequest},
	{"redrive the zero instance", "POST", aSink + "/redrive", `{"instance":"` + uuid.Nil.String() + `"}`, nil, workflow.InvalidRequest},
	{"redrive position 0", "POST", aSink + "/redrive", `{"position":0}`, nil, workflow.InvalidRequest},
	{"a position of all", "POST", aSink + "/redrive?all_tenants=true", `{"position":2}`, nil, workflow.InvalidRequest},
	{"redrive what is queued", "POST", aSink + "/redrive", `{"all":true,"status":"queued"}`, nil, workflow.InvalidRequest},
	{"skip what is redriven", "POST", aSink + "/skip", `{"all":true,"status":"redriven","reason":"known"}`, nil, workflow.InvalidRequest},
	{"skip without a reason", "POST", aSink + "/skip", `{"all":true}`, nil, workflow.InvalidRequest},
	{"redrive nothing named", "POST", aSink + "/redrive", `{}`, nil, workflow.InvalidRequest},
	{"redrive with a reason alone", "POST", aSink + "/redrive", `{"reason":"mended"}`, nil, workflow.InvalidRequest},
	{"redrive not all", "POST", aSink + "/redrive", `{"all":false}`, nil, workflow.InvalidRequest},
	{"redrive a status", "POST", aSink + "/redrive", `{"status":"skipped"}`, nil, workflow.InvalidRequest},
	{"redrive of all tenants nothing named", "POST", aSink + "/redrive?all_tenants=true", `{}`, nil, workflow.InvalidRequest},
	{"skip nothing named", "POST", aSink + "/skip", `{"reason":"known"}`, nil, workflow.InvalidRequest},
	{"NUL in a workflow", "POST", aSink + "/skip", `{"workflow":"\u0000"}`, nil, workflow.InvalidRequest},
	{"an unknown field", "POST", aSink + "/skip", `{"tenant":"other"}`, nil, workflow.InvalidRequest},
}

func TestBadInputAboutSinksLeavesNoTrace(t *testing.T) {
	s, _ := withSinks(t)
	shown := func() string {
		return string(s.get("/v1/ops/sinks/main/dead?all_tenants=true").body) + fmt.Sprint(read[api.SinkPage](t, s.get(aSink)).Cursors)
	}
	before, sinks := s.rows(), shown()
	for _, c := range badSinks {
		headers := c.headers
		if !slices.Contains(headers, "Content-Type") {
			headers = append([]string{"Content-Type", "application/json"}, headers...)
		}
		a := s.do(c.method, c.path, []byte(c.body), headers...)
		a.wantProblem(t, c.code.Info().Status, c.code)
		require.Truef(t, !t.Failed() && len(a.body) <= 2000, "%s: %d bytes", c.name, len(a.body))
	}
	after := s.rows()
	assert.Truef(t, maps.Equal(before, after), "rows before %v, after %v", before, after)
	assert.Equal(t, sinks, shown(), "the sinks and")
}
