package api_test

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func TestDefaultVersion(t *testing.T) {
	s := newServerOf(t, boxes(), nil)
	json := []string{"Content-Type", "application/json"}
	const box = "/v1/ops/begins/box"
	begun := func(key string, want int) {
		t.Helper()
		a := s.post("/v1/workflows/box/fill", key, `{"weight":`+strconv.Itoa(int(key[0]))+`}`)
		a.want(t, http.StatusCreated)
		id := read[transitions.Result](t, a).Instance.String()
		i := read[wire.InstanceView](t, s.get("/v1/instances/"+id))
		assert.Equal(t, want, i.Definition, "it began with version")
	}
	begun("a", 2)
	s.do(http.MethodPut, box, []byte(`{"version":1}`), json...).want(t, http.StatusNoContent)
	begun("b", 1)
	list := read[api.VersionList](t, s.get("/v1/ops/versions")).Versions
	if len(list) != 4 || !list[0].Begins || list[1].Begins || list[0].Open != 1 || list[1].Open != 1 || len(list[0].Nodes) != 1 {
		t.Errorf("%+v", list)
	}
	s.do(http.MethodDelete, box, nil).want(t, http.StatusNoContent)
	s.do(http.MethodDelete, box, nil).want(t, http.StatusNoContent)
	begun("c", 2)

	s.do(http.MethodPut, box, []byte(`{"version":0}`), json...).wantProblem(t, http.StatusBadRequest, workflow.InvalidRequest)
	s.do(http.MethodPut, box, []byte(`{"version":3}`), json...).wantProblem(t, http.StatusNotFound, workflow.WorkflowNotFound)
	s.do(http.MethodDelete, "/v1/ops/begins/nothing", nil).wantProblem(t, http.StatusNotFound, workflow.WorkflowNotFound)
}
