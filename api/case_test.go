package api_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func TestInstanceShowsStuckCommand(t *testing.T) {
	s := newServer(t)
	status := s.stuck("a")
	path := "/v1/instances/" + status.Instance.String()
	a := s.get(path)
	view := read[wire.InstanceView](t, a)
	if len(view.Stuck) != 1 || view.Stuck[0].Key != "a" || view.Stuck[0].Stuck != transitions.StuckUnknown || view.Stuck[0].Undo {
		t.Errorf("%s", a.body)
	}
	// The tag is another one than before it was stuck, and so it is when it no longer is.
	tag := a.header.Get("ETag")
	assert.Truef(t, tag != `"2"` && s.get(path, "If-None-Match", tag).status == 304, "the tag is %s", tag)
	options := read[wire.Options](t, s.get(path+"/transitions"))
	if len(options.Stuck) != 1 || !strings.Contains(options.Stuck[0].Message, "waits for an operator to retry, resolve or abandon it") {
		t.Errorf("%+v", options)
	}
	told := 0
	for _, o := range options.Transitions {
		for _, r := range o.Reasons {
			if r.Code == workflow.IllegalTransition && r.Message == options.Stuck[0].Message {
				told++
			}
		}
	}
	assert.NotEqualf(t, 0, told, "%+v", options)
	for query, n := range map[string]int{"instance=" + status.Instance.String(): 1, "workflow=delivery&business_key=none": 0,
		"workflow=delivery": 1} {
		page := read[api.CommandPage](t, s.get("/v1/ops/stuck?"+query))
		assert.Lenf(t, page.Commands, n, "%s: %+v", query, page)
	}
	s.get("/v1/ops/stuck?business_key=none").wantProblem(t, 400, workflow.InvalidRequest)
	s.get("/v1/ops/stuck?instance=none").wantProblem(t, 400, workflow.InvalidRequest)
	s.operate("abandon", "op", status, "").want(t, 200)
	if view := read[wire.InstanceView](t, s.get(path)); len(view.Stuck) != 0 {
		t.Errorf("%+v", view)
	}
}

func TestAnOperatorSeesTheWholeOfACase(t *testing.T) {
	s := newServer(t)
	status := s.stuck("a")
	path := "/v1/ops/instances/" + status.Instance.String()
	c := read[api.Case](t, s.get(path))
	assert.Truef(t, c.Instance.ID == status.Instance && len(c.Instance.Stuck) == 1 && len(c.InFlight) == 1 && c.InFlight[0].Key == "a" &&
		int64(len(c.Timeline)) == c.Instance.Version && c.Chain.Intact && c.Chain.Entries == c.Instance.Version,
		"%+v", c)
	s.get(path, "Pawl-Roles", "clerk").wantProblem(t, 403, workflow.Forbidden)
	s.get(path, "Pawl-Tenant", "other").wantProblem(t, 404, workflow.InstanceNotFound)
	s.get(path+"?limit=1").wantProblem(t, 400, workflow.InvalidRequest)
	s.post("/v1/workflows/parcel/label", "l", `{"to":"Wien","label":"L/1"}`).want(t, 201)
	byKey := "/v1/ops/workflows/parcel/keys/L%2F1"
	c = read[api.Case](t, s.get(byKey))
	assert.Truef(t, c.Instance.BusinessKey == "L/1" && len(c.InFlight) == 0 && len(c.Timeline) == 1 && len(c.Instance.Stuck) == 0,
		"%+v", c)
	s.post(byKey+"/pause", "p", `{}`).want(t, 200)
	c = read[api.Case](t, s.get(byKey))
	assert.True(t, c.Instance.Paused, "it is not paused")
	s.get("/v1/ops/workflows/parcel/keys/L-2").wantProblem(t, 404, workflow.InstanceNotFound)
	s.get("/v1/ops/workflows/nothing/keys/L-2").wantProblem(t, 404, workflow.WorkflowNotFound)
}
