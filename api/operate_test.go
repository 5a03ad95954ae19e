package api_test

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// stuck makes a command that waits for an operator, and returns its status.
func (s *server) stuck(key string, headers ...string) wire.CommandStatus {
	s.t.Helper()
	book := s.post("/v1/workflows/delivery/book", uuid.NewString(), `{}`, headers...)
	id := read[transitions.Result](s.t, book).Instance
	a := s.post("/v1/instances/"+id.String()+"/entrust", key, `{}`, append(headers, "Pawl-Reason", "as promised")...)
	a.want(s.t, 202)
	s.visit().failed(context.DeadlineExceeded) // the outcome is unknown
	var status wire.CommandStatus
	for status.Stuck == "" {
		status = read[wire.CommandStatus](s.t, s.get(a.header.Get("Location"), headers...))
	}
	return status
}

func (s *server) operate(action, key string, about wire.CommandStatus, more string, headers ...string) answer {
	s.t.Helper()
	body := `{"scope":` + strconv.Quote(about.Scope) + `,"key":` + strconv.Quote(about.Key) + more + `}`
	return s.post("/v1/ops/commands/"+action, key, body, headers...)
}

// listed returns all commands of a list, page by page.
func (s *server) listed(path string) (list []wire.CommandStatus) {
	s.t.Helper()
	for next := ""; ; {
		page := read[api.CommandPage](s.t, s.get(path+"&limit=1&cursor="+url.QueryEscape(next)))
		if list, next = append(list, page.Commands...), page.Next; next == "" {
			return list
		}
	}
}

func TestCommandListsAndCounts(t *testing.T) {
	s := newServer(t)
	about := s.stuck("stuck")
	s.stuck("b/ä")
	s.stuck("another tenant's", "Pawl-Tenant", "other")
	id := s.booked()
	s.post("/v1/instances/"+id.String()+"/note", "later", `{}`, "Pawl-Not-Before", inAnHour(), "Pawl-Reason", "as promised").want(t, 202)
	for status, want := range map[string]int{"": 3, "stuck": 2, "failed_retryable": 2, "pending": 1, "scheduled": 1, "processing": 0, "due": 0,
		"stale": 0, "lapsed": 0} {
		assert.Len(t, s.listed("/v1/ops/commands?status="+status), want, status)
		assert.Emptyf(t, s.listed("/v1/ops/commands?workflow=parcel&status="+status), "%s of another workflow", status)
	}
	for _, path := range []string{"/v1/ops/commands?status=stuck", "/v1/ops/stuck?workflow=delivery"} {
		list := s.listed(path)
		assert.Lenf(t, list, 2, path)
		c := list[0]
		assert.Truef(t, c.Key == "stuck" && c.Stuck == transitions.StuckUnknown && c.Failures == 1 && c.Failure != "" &&
			c.Status == transitions.FailedRetryable && c.Reason == "as promised" && c.Effect == transitions.EffectKey(transitions.Ref{
			Tenant: transitions.DefaultTenant, Scope: c.Scope, Key: c.Key}), "%s: %+v", path, c)
	}
	assert.Len(t, s.listed("/v1/ops/stuck?instance="+about.Instance.String()), 1)
	assert.Empty(t, s.listed("/v1/ops/stuck?workflow=delivery&business_key=none"))
	for _, list := range []string{"stuck", "commands", "paused"} {
		s.get("/v1/ops/"+list+"?workflow=nothing").wantProblem(t, 404, workflow.WorkflowNotFound)
	}
	for range 3 {
		s.post("/v1/workflows/parcel/pack", "k", `{"to":"Wien"}`)
	}
	k := read[inspect.Keys](t, s.get("/v1/ops/keys"))
	assert.Truef(t, k.Tenant == transitions.DefaultTenant && k.Stuck == 2 && !k.At.IsZero() && !k.OldestInFlight.IsZero(), "%+v", k)
	assert.Contains(t, k.Scopes, inspect.ScopeCount{Tenant: transitions.DefaultTenant, Scope: "parcel:pack", New: 1, Replayed: 2})
	all := read[inspect.Keys](t, s.get("/v1/ops/keys?all_tenants=true"))
	assert.Truef(t, all.Tenant == "" && all.Stuck == 3 && len(all.Scopes) > len(k.Scopes), "all tenants: %+v", all)
	assert.NotEmpty(t, read[inspect.Retention](t, s.get("/v1/ops/retention")).Partitions)
}

func TestStuckCommandIsShownAndSettled(t *testing.T) {
	s := newServer(t)
	for action, c := range map[string]struct {
		more   string
		settle func()
		code   int
		state  workflow.State
	}{
		"retry":   {`,"reason":"the courier is back"`, func() { s.visit().signed("Ida") }, 200, delivered},
		"resolve": {`,"reason":"Ida has it","result":{"signed":"Ida"}`, func() {}, 200, delivered},
		"abandon": {`,"reason":"it is lost"`, func() {}, 409, returned},
	} {
		t.Run(action, func(t *testing.T) {
			about := s.stuck(action)
			path := "/v1/instances/" + about.Instance.String()
			a := s.get(path)
			view := read[wire.InstanceView](t, a)
			assert.Truef(t, len(view.Stuck) == 1 && view.Stuck[0].Key == action && view.Stuck[0].Stuck == transitions.StuckUnknown, "%s", a.body)
			options := read[wire.Options](t, s.get(path+"/transitions"))
			assert.Contains(t, options.Stuck[0].Message, "waits for an operator to retry, resolve or abandon it")
			whole := read[api.Case](t, s.get("/v1/ops"+path[len("/v1"):]))
			assert.Truef(t, whole.Instance.ID == about.Instance && len(whole.InFlight) == 1 && whole.InFlight[0].Key == action &&
				int64(len(whole.Timeline)) == whole.Instance.Version && whole.Chain.Intact, "%+v", whole)

			first := s.operate(action, "op-"+action, about, c.more, "Pawl-Actor", "olga")
			first.want(t, 200)
			c.settle()
			end := read[wire.CommandStatus](t, s.eventually("/v1/commands/"+about.Scope+"/"+action,
				func(c *wire.CommandStatus) bool { return c.Code != 0 }))
			assert.Truef(t, end.Code == c.code && end.Stuck == "" && end.Reason == "", "%+v", end)
			view = read[wire.InstanceView](t, s.get(path))
			assert.Truef(t, view.State == c.state && len(view.Stuck) == 0, "%+v", view)
			again := s.operate(action, "op-"+action, about, c.more, "Pawl-Actor", "olga")
			assert.Truef(t, string(again.body) == string(first.body) && again.header.Get("Idempotent-Replayed") == "true", "%s", again.body)
			s.operate(action, "op-"+action, about, `,"reason":"another"`, "Pawl-Actor", "olga").wantProblem(t, 422, workflow.KeyReused)
			s.operate(action, "late-"+action, about, c.more).wantProblem(t, 409, workflow.NotStuck)
		})
	}
	about := s.stuck("bad")
	for result, code := range map[string]workflow.Code{`7`: workflow.InvalidPayload, `1e400`: workflow.InvalidPayload,
		`{"signed":"` + strings.Repeat("x", 1<<20) + `"}`: workflow.TooLarge} {
		s.operate("resolve", uuid.NewString(), about, `,"result":`+result).wantProblem(t, code.Info().Status, code)
	}
	s.operate("abandon", "r", about, `,"result":{"signed":"x"}`).wantProblem(t, 400, workflow.InvalidRequest)
	s.operate("abandon", "r", about, `,"reason":"`+strings.Repeat("r", 4097)+`"`).wantProblem(t, 400, workflow.InvalidRequest)
	s.operate("abandon", "r", about, "", "Pawl-Tenant", "other").wantProblem(t, 404, workflow.CommandNotFound)
}

func TestPauseAndResume(t *testing.T) {
	s := newServer(t)
	ids := []uuid.UUID{s.booked(), s.booked(), s.booked()}
	for _, id := range ids[:2] {
		s.post("/v1/ops/instances/"+id.String()+"/pause", "p", `{"reason":"it rains"}`, "Pawl-Actor", "olga").want(t, 200)
	}
	refused := s.deliver(ids[0], "k")
	refused.wantProblem(t, 503, workflow.Paused)
	assert.NotEmpty(t, refused.header.Get("Retry-After"))
	for range 2 { // twice is no mistake
		s.do(http.MethodPut, "/v1/ops/paused/delivery", []byte(`{"reason":"snow"}`), "Content-Type", "application/json", "Pawl-Actor", "olga").
			want(t, 204)
	}
	s.deliver(ids[2], "k").wantProblem(t, 503, workflow.Paused)
	first := read[api.PausedList](t, s.get("/v1/ops/paused?limit=1"))
	second := read[api.PausedList](t, s.get("/v1/ops/paused?limit=1&cursor="+first.Next))
	assert.Truef(t, len(first.Workflows) == 1 && len(second.Workflows) == 1 && len(first.Instances) == 1 && len(second.Instances) == 1 &&
		second.Next == "" && first.Instances[0].Instance != second.Instances[0].Instance, "%+v, then %+v", first, second)
	w, p := first.Workflows[0], second.Instances[0]
	assert.Truef(t, w.Workflow == "delivery" && w.Actor == "olga" && w.Reason == "snow" && !w.At.IsZero(), "%+v", w)
	assert.Truef(t, p.Reason == "it rains" && p.Actor == "olga" && !p.At.IsZero() && p.Workflow == "delivery" && p.State == booked, "%+v", p)
	for path, tenant := range map[string]string{"/v1/ops/paused?workflow=parcel": "default", "/v1/ops/paused": "other"} {
		assert.Equal(t, `{"workflows":[],"instances":[]}`, string(s.get(path, "Pawl-Tenant", tenant).body), path)
	}
	for range 2 {
		s.do(http.MethodDelete, "/v1/ops/paused/delivery", nil).want(t, 204)
	}
	s.do(http.MethodPost, "/v1/ops/instances/"+ids[0].String()+"/resume", nil, "Idempotency-Key", "r").want(t, 200) // without a body
	s.deliver(ids[0], "k").want(t, 202)
	s.visit().signed("Ida")
}

func TestMetricsNeedOperatorOfAll(t *testing.T) {
	newServer(t).get("/metrics").wantProblem(t, 404, workflow.NotFound) // none are configured
	s := newServer(t, func(c *api.Config) {
		c.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain; version=0.0.4")
			_, _ = io.WriteString(w, "pawl_up 1\n")
		})
	})
	assert.Equal(t, "pawl_up 1\n", string(s.get("/metrics", "Pawl-Roles", api.OperatorOfAll).body))
	s.get("/metrics", "Pawl-Roles", "operator").wantProblem(t, 403, workflow.Forbidden) // of one tenant
}
