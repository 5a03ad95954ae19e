package api_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// A request that only a node with the instance's version can answer is retryable, for callers and for senders of messages.
func TestNotOnThisNode_Retryable(t *testing.T) {
	s := newServer(t, withPost)
	id := read[transitions.Result](t, s.post("/v1/workflows/parcel/label", "l", `{"to":"Wien","label":"L-1"}`)).Instance.String()
	later := s.post("/v1/instances/"+id+"/send", "later", `{"via":"air"}`, "Pawl-Not-Before", time.Now().Add(time.Hour).Format(time.RFC3339),
		"Pawl-Actor", "ann", "Pawl-Roles", "clerk")
	later.want(t, 202)
	s.exec("UPDATE pawl.instance SET definition = 2 WHERE id = $1", id)
	for what, a := range map[string]answer{
		"a command":                s.post("/v1/instances/"+id+"/stamp", "1", `{"price":1}`),
		"by its key":               s.post("/v1/workflows/parcel/keys/L-1/stamp", "2", `{"price":1}`),
		"what nobody here knows":   s.post("/v1/instances/"+id+"/burn", "3", `{}`),
		"a payload likewise":       s.post("/v1/instances/"+id+"/stamp", "4", `{"colour":"red"}`),
		"a dry run":                s.post("/v1/instances/"+id+"/stamp?dry_run=true", "5", `{"price":1}`),
		"a message":                s.mail("m", `{"type":"scanned","label":"L-1","price":1}`),
		"what can be done":         s.get("/v1/instances/" + id + "/transitions"),
		"a drawing":                s.get("/v1/instances/" + id + "/diagram"),
		"who may cancel a command": s.do(http.MethodDelete, later.header.Get("Location"), nil, "Pawl-Actor", "bob", "Pawl-Roles", "clerk"),
	} {
		if a.wantProblem(t, 503, workflow.NotOnThisNode); a.header.Get("Retry-After") == "" {
			t.Errorf("%s: when to come again is not said", what)
		}
	}
	dead := s.deadMessages("")
	assert.Emptyf(t, dead.Messages, "%+v", dead)
	v := read[wire.InstanceView](t, s.get("/v1/instances/"+id))
	assert.Truef(t, v.Definition == 2 && v.Version == 1, "%+v", v)
	s.exec("UPDATE pawl.instance SET definition = 1 WHERE id = $1", id) // as on a node that knows it
	s.post("/v1/instances/"+id+"/stamp", "1", `{"price":1}`).want(t, 200)
	s.mail("m", `{"type":"scanned","label":"L-1","price":1}`).want(t, 200)
}
