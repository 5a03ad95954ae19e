package api_test

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// stuck makes a command that waits for an operator, and returns its status.
func (s *server) stuck(key string, headers ...string) wire.CommandStatus {
	s.t.Helper()
	book := s.post("/v1/workflows/delivery/book", uuid.NewString(), `{}`, headers...)
	id := read[transitions.Result](s.t, book).Instance
	a := s.post("/v1/instances/"+id.String()+"/entrust", key, `{}`, headers...)
	a.want(s.t, 202)
	s.visit().failed(context.DeadlineExceeded) // nobody knows what it has done
	var status wire.CommandStatus
	await.Eventually(s.t, "the command is stuck", func() bool {
		status = read[wire.CommandStatus](s.t, s.get(a.header.Get("Location"), headers...))
		return status.Stuck != ""
	})
	return status
}

func (s *server) operate(action, key string, about wire.CommandStatus, more string, headers ...string) answer {
	s.t.Helper()
	body := `{"scope":` + strconv.Quote(about.Scope) + `,"key":` + strconv.Quote(about.Key) + more + `}`
	return s.post("/v1/ops/commands/"+action, key, body, headers...)
}

func TestStuckCommandsAreListedPageByPage(t *testing.T) {
	s := newServer(t)
	var want []string
	for _, key := range []string{"a", "b/ä", strings.Repeat("c", 255)} {
		want = append(want, s.stuck(key).Key)
	}
	s.stuck("another tenant's", "Pawl-Tenant", "other")
	var got []string
	query := "?limit=1"
	for pages := 0; query != ""; pages++ {
		require.True(t, pages <= 5, "the pages do not end")
		a := s.get("/v1/ops/stuck" + query)
		a.want(t, 200)
		page := read[api.CommandPage](t, a)
		for _, c := range page.Commands {
			assert.Truef(t, c.Stuck != "" && c.Failures == 1 && c.Failure != "" && c.Status == transitions.FailedRetryable &&
				c.Effect == transitions.EffectKey(transitions.Ref{Tenant: transitions.DefaultTenant, Scope: c.Scope, Key: c.Key}),
				"%+v", c)
			got = append(got, c.Key)
		}
		if query = ""; page.Next != "" {
			query = "?limit=1&cursor=" + url.QueryEscape(page.Next)
		}
	}
	assert.Equalf(t, strings.Join(want, ","), strings.Join(got, ","), "listed %q, want %q", got, want)
	page := read[api.CommandPage](t, s.get("/v1/ops/stuck?workflow=parcel"))
	assert.Truef(t, len(page.Commands) == 0 && page.Next == "", "%+v", page)
	page = read[api.CommandPage](t, s.get("/v1/ops/stuck?workflow=delivery"))
	assert.Lenf(t, page.Commands, 3, "%+v", page)
	s.get("/v1/ops/stuck?workflow=nothing").wantProblem(t, 404, workflow.WorkflowNotFound)
}

func TestAnOperatorSettlesStuckCommands(t *testing.T) {
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
			first := s.operate(action, "op-"+action, about, c.more, "Pawl-Actor", "olga")
			first.want(t, 200)
			c.settle()
			var end wire.CommandStatus
			await.Eventually(t, "the command has an answer", func() bool {
				end = read[wire.CommandStatus](t, s.get("/v1/commands/"+about.Scope+"/"+action))
				return end.Code != 0
			})
			assert.Truef(t, end.Code == c.code && end.Stuck == "", "%+v", end)
			i := read[wire.Instance](t, s.get("/v1/instances/"+about.Instance.String()))
			assert.Equal(t, c.state, i.State, "the instance")
			again := s.operate(action, "op-"+action, about, c.more, "Pawl-Actor", "olga")
			if again.status != 200 || string(again.body) != string(first.body) || again.header.Get("Idempotent-Replayed") != "true" {
				t.Errorf("again: %d %s %v; the first time %s", again.status, again.body, again.header, first.body)
			}
			s.operate(action, "op-"+action, about, `,"reason":"another"`, "Pawl-Actor", "olga").wantProblem(t, 422, workflow.KeyReused)
			before := s.rows()
			s.operate(action, "late-"+action, about, c.more).wantProblem(t, 409, workflow.NotStuck) // decided, so it is stored
			if after := s.rows(); after["command"] != before["command"]+1 || after["audit"] != before["audit"] {
				t.Errorf("rows before %v, after %v", before, after)
			}
			history := read[wire.History](t, s.get("/v1/instances/"+about.Instance.String()+"/history"))
			audited := false
			for _, e := range history.Entries {
				audited = audited || e.Actor == "olga" && e.Reason != ""
			}
			assert.Truef(t, audited, "nothing says what olga did: %+v", history.Entries)
		})
	}
}

func TestAPausedInstanceBeginsNothingNew(t *testing.T) {
	s := newServer(t)
	id := s.booked()
	path := "/v1/ops/instances/" + id.String()
	a := s.post(path+"/pause", "p", `{"reason":"the street is closed"}`)
	a.want(t, 200)
	again := s.post(path+"/pause", "p", `{"reason":"the street is closed"}`)
	assert.Truef(t, string(again.body) == string(a.body) && again.status == 200, "%d %s", again.status, again.body)
	s.post(path+"/pause", "", `{}`).wantProblem(t, 400, workflow.KeyMissing)
	refused := s.deliver(id, "k")
	refused.wantProblem(t, 503, workflow.Paused)
	assert.NotEqual(t, "", refused.header.Get("Retry-After"), "503 without Retry-After")
	s.do(http.MethodPost, path+"/resume", nil, "Idempotency-Key", "r").want(t, 200) // without a body
	s.deliver(id, "k").want(t, 202)
	s.visit().signed("Ida")
}

func TestAPausedWorkflowBeginsNothingNew(t *testing.T) {
	s := newServer(t)
	id := s.booked()
	put := s.do(http.MethodPut, "/v1/ops/paused/delivery", []byte(`{"reason":"snow"}`), "Content-Type", "application/json",
		"Pawl-Actor", "olga")
	put.want(t, 204)
	s.do(http.MethodPut, "/v1/ops/paused/delivery", nil).want(t, 204) // twice is no mistake
	list := read[api.PausedList](t, s.get("/v1/ops/paused"))
	assert.Truef(t, len(list.Workflows) == 1 && list.Workflows[0].Workflow == "delivery" && list.Workflows[0].Actor == "olga" &&
		list.Workflows[0].Reason == "snow" && !list.Workflows[0].At.IsZero(),
		"%+v", list)
	other := s.get("/v1/ops/paused", "Pawl-Tenant", "other")
	assert.Equalf(t, `{"workflows":[],"instances":[]}`, string(other.body), "another tenant sees %s", other.body)
	s.deliver(id, "k").wantProblem(t, 503, workflow.Paused)
	s.packed("1") // another workflow
	s.post("/v1/workflows/delivery/book", "k", `{}`, "Pawl-Tenant", "other").want(t, 201)
	s.do(http.MethodDelete, "/v1/ops/paused/delivery", nil).want(t, 204)
	s.do(http.MethodDelete, "/v1/ops/paused/delivery", nil).want(t, 204)
	s.deliver(id, "k").want(t, 202)
	s.visit().signed("Ida")
}
