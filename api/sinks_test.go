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
	s = newServerOf(t, nil, []relay.Sink{
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

func TestSinksAreShownByTenant(t *testing.T) {
	s, _ := withSinks(t)
	list := func(query string, headers ...string) []inspect.SinkInfo {
		return read[api.SinkList](t, s.get("/v1/ops/sinks"+query, headers...)).Sinks
	}
	all := list("?all_tenants=true")
	assert.Truef(t, len(all) == 2 && all[0].Name == "main" && all[0].DeadLetters == 4 && all[0].Parked == 4 && all[0].Delivered == 2 &&
		all[0].Node != "" && !all[0].LeaseEnds.IsZero() && all[1].Name == "theirs" && all[1].Delivered == 3, "all: %+v", all)
	own := list("", "Pawl-Roles", "operator")
	assert.Truef(t, len(own) == 1 && own[0].Name == "main" && own[0].DeadLetters == 2 && own[0].Parked == 0 && own[0].Delivered == 0 &&
		own[0].Failure == "", "of the tenant: %+v", own)
	other := list("", "Pawl-Tenant", "other", "Pawl-Roles", "operator")
	assert.Truef(t, len(other) == 2 && slices.Equal(other[1].Tenants, []string{"other"}), "of the other: %+v", other)
	for _, path := range []string{"/v1/ops/sinks", "/v1/ops/sinks/main", "/v1/ops/sinks/main/dead"} {
		s.get(path+"?all_tenants=true", "Pawl-Roles", "operator").wantProblem(t, 403, workflow.Forbidden)
		s.get(strings.Replace(path, "main", "theirs", 1)+"?all_tenants=false", "Pawl-Roles", "operator", "Pawl-Tenant", "other").want(t, 200)
	}
	for _, path := range []string{"/v1/ops/sinks/theirs", "/v1/ops/sinks/theirs/dead"} {
		s.get(path, "Pawl-Roles", "operator").wantProblem(t, 404, workflow.NotFound)
	}
	first := read[api.SinkPage](t, s.get("/v1/ops/sinks/main?all_tenants=true&limit=1"))
	second := read[api.SinkPage](t, s.get("/v1/ops/sinks/main?all_tenants=true&limit=1&cursor="+url.QueryEscape(first.Next)))
	assert.Truef(t, first.Cursors[0].Tenant == "default" && first.Cursors[0].Position == 3 && first.Cursors[0].Head == 3 &&
		second.Cursors[0].Tenant == "other" && second.Next == "", "%+v, then %+v", first, second)
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
		a.want(t, 200)
		assert.Equal(t, want, read[api.DeadChange](t, a).Changed)
	}
	assert.Equal(t, []string{"default 2-0", "default 3-0", "other 2-0", "other 3-0"}, s.deadLetters("&all_tenants=true"))
	one := read[api.DeadPage](t, s.get("/v1/ops/sinks/main/dead")).Dead[0]
	assert.Truef(t, one.Failure == "no stamps" && one.Kind == "permanent" && one.Status == inspect.DeadWaiting && one.Attempts == 1 &&
		one.Workflow == "parcel", "%+v", one)
	assert.Len(t, s.deadLetters("&status=waiting&workflow=parcel&type=parcel.stamp&instance="+one.Instance.String()), 2)
	for _, query := range []string{"&type=parcel.pack", "&workflow=parcel&business_key=L-1"} {
		assert.Empty(t, s.deadLetters(query), query)
	}
	for _, want := range []int64{1, 0} { // twice is no mistake
		changed(want, s.operateSink("skip", `{"position":3,"reason":"known"}`, "Pawl-Actor", "olga"))
	}
	skipped := read[api.DeadPage](t, s.get("/v1/ops/sinks/main/dead?status=skipped")).Dead
	assert.Truef(t, len(skipped) == 1 && skipped[0].By == "olga" && skipped[0].Reason == "known", "%+v", skipped)
	main.mended()
	changed(0, s.operateSink("redrive", `{"workflow":"parcel","business_key":"L-1"}`))
	changed(1, s.operateSink("redrive", `{"type":"parcel.stamp"}`, "Pawl-Roles", "operator"))
	s.operateSink("redrive?all_tenants=true", `{"all":true}`, "Pawl-Roles", "operator").wantProblem(t, 403, workflow.Forbidden)
	changed(2, s.operateSink("redrive?all_tenants=true", `{"all":true}`))
	await.Eventually(t, "the sink has three of four", func() bool { return len(main.got()) == 5 })
}

func TestSinkIsPausedAndMoved(t *testing.T) {
	s, main := withSinks(t)
	main.mended()
	for _, change := range []string{"pause", "resume", "forget"} { // are for operators of all tenants
		s.operateSink(change, `{}`, "Pawl-Roles", "operator").wantProblem(t, 403, workflow.Forbidden)
	}
	s.operateSink("pause", `{"reason":"maintenance"}`, "Pawl-Actor", "olga").want(t, 204)
	var info inspect.SinkInfo
	await.Eventually(t, "its node releases the sink", func() bool {
		info = read[api.SinkPage](t, s.get("/v1/ops/sinks/main")).Sink
		return info.Node == ""
	})
	assert.Truef(t, info.Paused != nil && info.Paused.By == "olga" && info.Paused.Reason == "maintenance", "%+v", info)
	s.packed("1")
	info = read[api.SinkPage](t, s.get("/v1/ops/sinks/main")).Sink
	assert.Truef(t, info.Lag == 1 && info.Behind == 1 && !info.Oldest.IsZero(), "%+v", info)
	s.operateSink("move", `{"position":1}`, "Pawl-Actor", "olga", "Pawl-Roles", "operator").want(t, 204)
	s.operateSink("move", `{"position":2}`).wantProblem(t, 400, workflow.InvalidRequest) // forward, without a reason
	c := read[api.SinkPage](t, s.get("/v1/ops/sinks/main")).Cursors[0]
	assert.Truef(t, c.Position == 1 && c.Moved != nil && c.Moved.From == 3 && c.Moved.By == "olga", "%+v", c)
	s.operateSink("resume", "").want(t, 204)
	await.Eventually(t, "the sink has all of the tenant", func() bool { return len(main.got()) == 5 })
	s.operateSink("forget", `{}`).wantProblem(t, 400, workflow.InvalidRequest) // its node delivers
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
