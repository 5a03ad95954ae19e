package api_test

import (
	"context"
	"fmt"
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

// The bodies of changes are checked before anything is written.
func TestSinkChangesAreChecked(t *testing.T) {
	s, _ := withSinks(t)
	before := s.rows()
	for _, c := range []struct {
		change, body string
		code         workflow.Code
	}{
		{"move", `{}`, workflow.InvalidRequest},
		{"move", `{"position":-1}`, workflow.InvalidRequest},
		{"move", `{"position":4,"reason":"past the log"}`, workflow.InvalidRequest},
		{"redrive", `{}`, workflow.InvalidRequest},
		{"redrive", `{"workflow":""}`, workflow.InvalidRequest},
		{"redrive", `{"business_key":"L-1"}`, workflow.InvalidRequest},
		{"redrive", `{"workflow":"parcel","business_key":""}`, workflow.InvalidRequest},
		{"redrive", `{"type":""}`, workflow.InvalidRequest},
		{"redrive", `{"instance":""}`, workflow.InvalidRequest},
		{"redrive", `{"position":0}`, workflow.InvalidRequest},
		{"redrive?all_tenants=true", `{"position":2}`, workflow.InvalidRequest},
		{"redrive", `{"all":false}`, workflow.InvalidRequest},
		{"redrive", `{"status":"skipped"}`, workflow.InvalidRequest},
		{"redrive", `{"all":true,"status":"queued"}`, workflow.InvalidRequest},
		{"skip", `{"all":true,"status":"redriven","reason":"known"}`, workflow.InvalidRequest},
		{"skip", `{"all":true}`, workflow.InvalidRequest},
		{"skip", `{"workflow":"\u0000","reason":"known"}`, workflow.InvalidRequest},
		{"skip", `{"all":true,"reason":"` + strings.Repeat("r", 4097) + `"}`, workflow.InvalidRequest},
		{"../theirs/move", `{"position":0}`, workflow.NotFound},
	} {
		path := strings.Replace("/v1/ops/sinks/main/"+c.change, "main/../", "", 1)
		a := s.do(http.MethodPost, path, []byte(c.body), "Content-Type", "application/json")
		a.wantProblem(t, c.code.Info().Status, c.code)
		require.Falsef(t, t.Failed(), "%s %.80s", path, c.body)
	}
	assert.Equal(t, before, s.rows(), "rows")
}
