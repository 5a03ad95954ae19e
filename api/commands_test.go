package api_test

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// listed are all commands of a list, page by page.
func (s *server) listed(query string, headers ...string) (list []wire.CommandStatus) {
	s.t.Helper()
	for at := "/v1/ops/commands?limit=1" + query; ; {
		page := read[api.CommandPage](s.t, s.get(at, headers...))
		if list = append(list, page.Commands...); page.Next == "" || len(list) > 100 {
			return list
		}
		at = "/v1/ops/commands?limit=1" + query + "&cursor=" + url.QueryEscape(page.Next)
	}
}

func TestCommandsInFlightAreListed(t *testing.T) {
	s := newServer(t)
	require.Empty(t, s.listed(""))
	stuck := s.stuck("stuck")
	s.stuck("another tenant's", "Pawl-Tenant", "other")
	a := s.post("/v1/workflows/delivery/book", "book", `{}`)
	a.want(t, 201)
	id := read[transitions.Result](t, a).Instance
	for _, key := range []string{"later", "later still"} {
		s.post("/v1/instances/"+id.String()+"/note", key, `{}`, "Pawl-Not-Before", time.Now().Add(time.Hour).UTC().Format(time.RFC3339),
			"Pawl-Reason", "as promised").want(t, 202)
	}
	for status, want := range map[string]int{"": 3, "stuck": 1, "failed_retryable": 1, "pending": 2, "scheduled": 2, "processing": 0, "due": 0,
		"stale": 0, "lapsed": 0} {
		for _, query := range []string{"&status=" + status, "&workflow=delivery&status=" + status} {
			assert.Len(t, s.listed(query), want, query)
		}
		assert.Emptyf(t, s.listed("&workflow=parcel&status="+status), "%s of another workflow", status)
	}
	if c := s.listed("&status=stuck")[0]; c.Key != stuck.Key || c.Stuck == "" || c.Effect == "" || c.ClaimedBy == "" || c.Failures != 1 {
		t.Errorf("%+v", c)
	}
	c := s.listed("&status=scheduled")[0]
	assert.Truef(t, c.Reason == "as promised" && c.Instance == id && !c.RunAt.IsZero() && c.Status == transitions.Pending, "%+v", c)
	// So does the status of the command itself, until it has ended.
	at := "/v1/commands/" + c.Scope + "/later"
	if one := read[wire.CommandStatus](t, s.get(at)); one.Reason != "as promised" {
		t.Errorf("%+v", one)
	}
	if a := s.do(http.MethodDelete, at, nil); a.status != 202 && a.status != 200 { // it may have ended by then
		t.Errorf("%d %s", a.status, a.body)
	}
	var one wire.CommandStatus
	await.Eventually(t, "it has ended", func() bool {
		one = read[wire.CommandStatus](t, s.get(at))
		return one.Code == 409
	})
	assert.Equalf(t, "", one.Reason, "%+v", one)
	for path, code := range map[string]workflow.Code{"?status=succeeded": workflow.InvalidRequest, "?status=x": workflow.InvalidRequest,
		"?status=due&status=stale": workflow.InvalidRequest, "?workflow=x": workflow.WorkflowNotFound, "?limit=0": workflow.InvalidRequest,
		"?cursor=x": workflow.InvalidRequest, "?phase=sql": workflow.InvalidRequest, "?workflow=%00": workflow.InvalidRequest,
		"?cursor=" + read[api.CommandPage](t, s.get("/v1/ops/stuck?limit=1")).Next + "AAAA": workflow.InvalidRequest} {
		s.get("/v1/ops/commands"+path).wantProblem(t, code.Info().Status, code)
	}
}

func TestPausedList(t *testing.T) {
	s := newServer(t)
	var ids []string
	for _, key := range []string{"1", "2", "3"} {
		a := s.post("/v1/workflows/delivery/book", key, `{}`)
		a.want(t, 201)
		ids = append(ids, read[transitions.Result](t, a).Instance.String())
	}
	for _, id := range ids[:2] {
		s.post("/v1/ops/instances/"+id+"/pause", "pause", `{"reason":"it rains"}`, "Pawl-Actor", "olga").want(t, 200)
	}
	s.do(http.MethodPut, "/v1/ops/paused/delivery", []byte(`{"reason":"it snows"}`), "Content-Type", "application/json").want(t, 204)
	first := read[api.PausedList](t, s.get("/v1/ops/paused?limit=1"))
	second := read[api.PausedList](t, s.get("/v1/ops/paused?limit=1&cursor="+first.Next))
	assert.Truef(t, len(first.Workflows) == 1 && len(second.Workflows) == 1 && len(first.Instances) == 1 && len(second.Instances) == 1 &&
		second.Next == "" && first.Instances[0].Instance != second.Instances[0].Instance,
		"%+v, then %+v", first, second)
	if p := second.Instances[0]; p.Reason != "it rains" || p.Actor != "olga" || p.At.IsZero() || p.Workflow != "delivery" || p.State == "" {
		t.Errorf("%+v", p)
	}
	p := read[api.PausedList](t, s.get("/v1/ops/paused?workflow=parcel"))
	assert.Equalf(t, 0, len(p.Workflows)+len(p.Instances), "%+v", p)
	p = read[api.PausedList](t, s.get("/v1/ops/paused", "Pawl-Tenant", "other"))
	assert.Equalf(t, 0, len(p.Workflows)+len(p.Instances), "%+v", p)
	s.get("/v1/ops/paused?workflow=x").wantProblem(t, 404, workflow.WorkflowNotFound)
	s.get("/v1/ops/paused?cursor=x").wantProblem(t, 400, workflow.InvalidRequest)
	s.post("/v1/ops/instances/"+ids[0]+"/resume", "resume", `{}`).want(t, 200)
	p = read[api.PausedList](t, s.get("/v1/ops/paused"))
	assert.Truef(t, len(p.Instances) == 1 && p.Instances[0].Instance.String() == ids[1], "%+v", p)
}
