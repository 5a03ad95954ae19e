package api_test

import (
	"context"
	"net/http"
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

func TestCancellingStopsTheWorkAndIsARequest(t *testing.T) {
	s := newServer(t)
	a := s.post("/v1/instances/"+s.booked().String()+"/deliver", "k", `{"stubborn":true}`)
	a.want(t, http.StatusAccepted)
	address := a.header.Get("Location")
	v := s.visit()
	a = s.do(http.MethodDelete, address, nil, "Pawl-Actor", "ann")
	a.want(t, http.StatusAccepted)
	assert.Truef(t, read[wire.CommandStatus](t, a).CancelledBy == "ann" && a.header.Get("Location") == address &&
		a.header.Get("Retry-After") != "",
		"%s %v", a.body, a.header)
	<-v.ctx.Done()
	v.failed(context.Canceled)
	await.Eventually(t, "its failure is shown", func() bool {
		return read[wire.CommandStatus](t, s.get(address)).Status == transitions.FailedFinal
	})
	a = s.do(http.MethodDelete, address, nil)
	a.want(t, http.StatusOK)
	status := read[wire.CommandStatus](t, a)
	assert.True(t, status.Code == 409 && status.CancelledBy == "ann" && status.Problem != nil, a.body)
	assert.Equal(t, a.header.Get("ETag"), s.get(address).header.Get("ETag"), "cancelling a finished command changed it")
	answer{409, http.Header{"Content-Type": {"application/problem+json"}}, status.Problem}.wantProblem(t, 409, workflow.CommandCancelled)
}

func TestOnlyOperatorsCancelWhatWaitsForThem(t *testing.T) {
	s := newServer(t)
	for _, role := range []string{api.Operator, api.OperatorOfAll} {
		about := s.stuck("k")
		address := "/v1/commands/" + about.Scope + "/" + about.Key
		s.do(http.MethodDelete, address, nil, "Pawl-Actor", "ann", "Pawl-Roles", "nobody").wantProblem(t, 403, workflow.Forbidden)
		status := read[wire.CommandStatus](t, s.get(address))
		assert.Truef(t, status.Stuck != "" && status.CancelledBy == "", "%+v", status)
		a := s.do(http.MethodDelete, address, nil, "Pawl-Actor", "ann", "Pawl-Roles", role)
		if status := read[wire.CommandStatus](t, a); a.status != 202 && a.status != 200 || status.CancelledBy != "ann" { // a worker may be quick
			t.Errorf("%s: %d %s", role, a.status, a.body)
		}
	}
}

func TestCancel_ClaimedInSQL(t *testing.T) {
	s := newServer(t)
	_, err := s.pool.Exec(t.Context(), "SELECT pawl.claim('desk', 'k', sha256('x'))")
	require.NoError(t, err)
	s.do(http.MethodDelete, "/v1/commands/desk/k", nil).wantProblem(t, 409, workflow.InProgress)
}

func TestACommandIsCancelledByWhoSentItOrCouldHave(t *testing.T) {
	s := newServer(t)
	later := time.Now().Add(time.Hour).Format(time.RFC3339)
	send := func() string {
		id := s.packed("1").String()
		a := s.post("/v1/instances/"+id+"/send", "k", `{"via":"air"}`, "Pawl-Not-Before", later, "Pawl-Actor", "ann", "Pawl-Roles", "clerk")
		a.want(t, 202)
		return a.header.Get("Location")
	}
	address := send()
	s.do(http.MethodDelete, address, nil, "Pawl-Actor", "eve", "Pawl-Roles", "nobody").wantProblem(t, 403, workflow.RoleRequired)
	status := read[wire.CommandStatus](t, s.get(address))
	assert.Equalf(t, "", status.CancelledBy, "%+v", status)
	for _, who := range [][]string{{"Pawl-Actor", "ann", "Pawl-Roles", "nobody"}, {"Pawl-Actor", "bob", "Pawl-Roles", "boss"},
		{"Pawl-Actor", "eve", "Pawl-Roles", api.Operator}, {"Pawl-Actor", "eve", "Pawl-Roles", api.OperatorOfAll}} {
		a := s.do(http.MethodDelete, send(), nil, who...)
		assert.Falsef(t, a.status != 202 && a.status != 200, "%v: %d %s", who, a.status, a.body)
	}
}
