package api_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// To say that something has happened before takes a grant of its own, and the audit row and the event say it.
func TestImportNeedsGrant(t *testing.T) {
	g := newGuarded(t)
	const then = "2020-01-31T12:00:00Z"
	path := "/v1/instances/" + g.instance.String() + "/stamp"
	at := []string{"Pawl-Happened-At", then}
	g.post(path, "1", `{}`, append(g.with("submit"), at...)...).wantProblem(t, 403, workflow.Forbidden)
	g.post(path+"?dry_run=true", "1", `{}`, append(g.with("submit"), at...)...).wantProblem(t, 403, workflow.Forbidden)
	g.post(path, "1", `{}`, append(g.with("submit import:parcel/pack"), at...)...).wantProblem(t, 404, workflow.InstanceNotFound)
	for _, wrong := range []string{"yesterday", "2999-01-31T12:00:00Z", "", "0001-01-01T00:00:00Z"} {
		g.post(path, "1", `{}`, append(g.with("submit import:parcel/stamp"), "Pawl-Happened-At", wrong)...).wantProblem(t, 400,
			workflow.InvalidRequest)
	}
	g.post(path, "1", `{}`, append(g.with("submit import:parcel/stamp"), at...)...).want(t, 200)
	g.post(path, "1", `{}`, g.with("submit")...).wantProblem(t, 422, workflow.KeyReused)
	item := func(key, more string) string {
		return `{"transition":"stamp","workflow":"parcel","business_key":"L-1","key":"` + key + `"` + more + `}`
	}
	bulk := "[" + item("2", `,"happened_at":"2021-01-31T12:00:00+01:00"`) + "," + item("3", "") + "," + item("4", `,"happened_at":"once"`) +
		"," + item("5", `,"happened_at":"0001-01-01T00:00:00Z"`) + "]"
	if list := read[[]wire.BulkResult](t, g.post("/v1/commands", "", bulk, g.with("submit")...)); list[0].Status != 403 ||
		list[1].Status != 200 {
		t.Errorf("%d, %d", list[0].Status, list[1].Status)
	}
	list := read[[]wire.BulkResult](t, g.post("/v1/commands", "", bulk, g.with("submit import")...))
	assert.Truef(t, list[0].Status == 200 && list[1].Status == 200 && list[2].Status == 400 && list[3].Status == 400, "%+v", list)
	var imports []string
	for _, e := range read[wire.History](t, g.get("/v1/instances/"+g.instance.String()+"/history", g.with("read")...)).Entries {
		if e.Cause == transitions.CausedByImport {
			imports = append(imports, e.Key+" "+e.CausedBy)
		}
	}
	assert.Equal(t, "1 "+then+", 2 2021-01-31T11:00:00Z", strings.Join(imports, ", "), "imports")
}
