package api_test

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func TestInstancesAreFoundByEveryFilter(t *testing.T) {
	s := newServer(t)
	for i := range 12 {
		to := []string{"Wien", "Graz", "Linz & Wels"}[i%3]
		a := s.post("/v1/workflows/parcel/label", strconv.Itoa(i),
			`{"to":"`+to+`","weight":`+strconv.Itoa(i*20)+`,"label":"L/`+strconv.Itoa(i)+`"}`)
		a.want(t, 201)
		if i%4 == 0 && i*20 <= 100 {
			s.post(a.header.Get("Location")+"/send", "s", `{}`).want(t, 200)
		}
	}
	for query, want := range map[string]int{
		"":                                    12,
		"?workflow=parcel":                    12,
		"?state=sent":                         2,
		"?workflow=parcel&state=packed":       10,
		"?workflow=parcel&business_key=L%2F3": 1,
		"?workflow=parcel&business_key=L":     0,
		"?attr.to=Graz":                       4,
		"?attr.to=" + url.QueryEscape("Linz & Wels"): 4,
		"?attr.heavy=yes":              6,
		"?attr.heavy=yes&attr.to=Wien": 2,
		"?attr.colour=red":             0,
		"?state=elsewhere":             0,
	} {
		a := s.get("/v1/instances" + query)
		a.want(t, 200)
		if page := read[wire.InstancePage](t, a); len(page.Instances) != want || page.Next != "" {
			t.Errorf("%q: %d instances, next %q; want %d", query, len(page.Instances), page.Next, want)
		}
	}
	assert.Empty(t, read[wire.InstancePage](t, s.get("/v1/instances", "Pawl-Tenant", "other")).Instances,
		"another tenant sees instances")
	s.get("/v1/instances?workflow=nothing").wantProblem(t, 404, workflow.WorkflowNotFound)
	s.get("/v1/instances?business_key=L%2F3").wantProblem(t, 400, workflow.InvalidRequest)
}

func TestInstancePagesAreComplete(t *testing.T) {
	s := newServer(t)
	want := map[uuid.UUID]bool{}
	for range 25 {
		want[s.packed("1")] = true
	}
	seen := map[uuid.UUID]bool{}
	pages, cursor := 0, ""
	for {
		a := s.get("/v1/instances?limit=7" + cursor)
		a.want(t, 200)
		page := read[wire.InstancePage](t, a)
		pages++
		for _, i := range page.Instances {
			assert.Truef(t, !seen[i.ID] && want[i.ID], "instance %s: seen %t, ours %t", i.ID, seen[i.ID], want[i.ID])
			seen[i.ID] = true
		}
		if page.Next == "" {
			break
		}
		cursor = "&cursor=" + page.Next
		s.packed("1") // what comes in meanwhile has a later id, and harms nothing
		want = mark(t, s, want)
	}
	assert.Truef(t, len(seen) >= 25 && pages >= 4, "%d instances on %d pages", len(seen), pages)
}

// mark adds the instances that exist by now.
func mark(t *testing.T, s *server, want map[uuid.UUID]bool) map[uuid.UUID]bool {
	t.Helper()
	for _, i := range read[wire.InstancePage](t, s.get("/v1/instances?limit=1000")).Instances {
		want[i.ID] = true
	}
	return want
}

func TestAnInstanceIsShownWithItsVersion(t *testing.T) {
	s := newServer(t)
	a := s.post("/v1/workflows/parcel/label", "k", `{"to":"Wien","weight":7,"label":"größe/7 %"}`)
	a.want(t, 201)
	byID := s.get(a.header.Get("Location"))
	byKey := s.get("/v1/workflows/parcel/keys/" + url.PathEscape("größe/7 %"))
	byID.want(t, 200)
	byKey.want(t, 200)
	assert.Truef(t, string(byID.body) == string(byKey.body) && byID.header.Get("ETag") == byKey.header.Get("ETag") &&
		strings.HasPrefix(byID.header.Get("ETag"), `"1.`),
		"by id %s %s, by key %s %s", byID.header.Get("ETag"), byID.body, byKey.header.Get("ETag"), byKey.body)
	i := read[wire.Instance](t, byID)
	if i.Workflow != "parcel" || i.Definition != 1 || i.BusinessKey != "größe/7 %" || i.State != packed || !i.Open || i.Version != 1 ||
		i.Attributes["to"] != "Wien" || !strings.Contains(string(i.Data), "Wien") || i.CreatedAt.IsZero() || !i.UpdatedAt.Equal(i.CreatedAt) {
		t.Errorf("%+v", i)
	}
	path := a.header.Get("Location")
	tag := byID.header.Get("ETag")
	if same := s.get(path, "If-None-Match", "W/"+tag); same.status != 304 || len(same.body) != 0 || same.header.Get("ETag") != tag {
		t.Errorf("unchanged: %d %s", same.status, same.body)
	}
	s.stamp(i.ID, 1)
	if moved := s.get(path, "If-None-Match", tag); moved.status != 200 || !strings.HasPrefix(moved.header.Get("ETag"), `"2.`) {
		t.Errorf("changed: %d %s", moved.status, moved.header.Get("ETag"))
	}
	if head := s.do(http.MethodHead, path, nil); head.status != 200 || !strings.HasPrefix(head.header.Get("ETag"), `"2.`) || len(head.body) != 0 {
		t.Errorf("HEAD: %d %v", head.status, head.header)
	}
	s.get(path, "Pawl-Tenant", "other").wantProblem(t, 404, workflow.InstanceNotFound)
	s.get("/v1/workflows/nothing/keys/x").wantProblem(t, 404, workflow.WorkflowNotFound)
	s.get("/v1/workflows/parcel/keys/x").wantProblem(t, 404, workflow.InstanceNotFound)
}

func TestHistoryIsReadPieceByPiece(t *testing.T) {
	s := newServer(t)
	id := s.packed("1")
	s.stamp(id, 4)
	s.post("/v1/instances/"+id.String()+"/send", "last", `{"via":"rail"}`, "Pawl-Actor", "bob", "Idempotency-Scope", "post").want(t, 200)
	path := "/v1/instances/" + id.String() + "/history"
	var all []wire.Entry
	for after := int64(0); ; {
		a := s.get(path + "?limit=4&after=" + strconv.FormatInt(after, 10))
		a.want(t, 200)
		piece := read[wire.History](t, a)
		all = append(all, piece.Entries...)
		if after = piece.NextAfter; after == 0 {
			break
		}
	}
	for i, e := range all {
		assert.Truef(t, e.Version == int64(i)+1 && e.Position == int64(i)+1 && len(e.Hash) == 64, "entry %d: %+v", i, e)
	}
	last := all[len(all)-1]
	assert.Truef(t, len(all) == 6 && last.From == packed && last.To == sent && last.Actor == "bob" && last.Reason == "via rail" &&
		last.Scope == "post" && last.Key == "last" && string(last.Payload) == `{"via":"rail"}` && last.Transition == "send",
		"%d entries, the last %+v", len(all), last)
	s.get("/v1/instances/"+uuid.NewString()+"/history").wantProblem(t, 404, workflow.InstanceNotFound)
	s.get(path, "Pawl-Tenant", "other").wantProblem(t, 404, workflow.InstanceNotFound)
	v := read[inspect.Verification](t, s.get("/v1/ops/verify?instance="+id.String()))
	assert.Truef(t, v.Intact && v.Entries == 6 && v.Instances == 1, "verify: %+v", v)
	v = read[inspect.Verification](t, s.get("/v1/ops/verify"))
	assert.Truef(t, v.Intact && v.Entries == 6, "verify all: %+v", v)
	s.get("/v1/ops/verify?instance="+uuid.NewString()).wantProblem(t, 404, workflow.InstanceNotFound)
}

func TestOptionsSayWhatCanBeDoneAndWhyNot(t *testing.T) {
	s := newServer(t)
	path := "/v1/instances/" + s.packed("500").String() + "/transitions"
	for roles, want := range map[string]workflow.Code{"porter": workflow.RoleRequired, "clerk": workflow.GuardRefused} {
		a := s.get(path, "Pawl-Roles", roles)
		a.want(t, 200)
		allowed := map[string]wire.Option{}
		for _, o := range read[wire.Options](t, a).Transitions {
			allowed[o.Transition] = o
		}
		send := allowed["send"]
		if len(allowed) != 3 || !allowed["stamp"].Allowed || send.Allowed || len(send.Reasons) != 1 || send.Reasons[0].Code != want {
			t.Errorf("a %s can %+v", roles, allowed)
		}
	}
	s.get("/v1/instances/"+uuid.NewString()+"/transitions").wantProblem(t, 404, workflow.InstanceNotFound)
}

func TestCommandStatusRepeatsTheAnswer(t *testing.T) {
	s := newServer(t)
	created := s.post("/v1/workflows/parcel/pack", "a/b ü", `{"to":"Wien"}`, "Idempotency-Scope", "my/scope")
	created.want(t, 201)
	id := read[transitions.Result](t, created).Instance
	refused := s.post("/v1/instances/"+id.String()+"/stamp", "k", `{}`, "If-Match", `"9"`)
	refused.want(t, 412)

	status := s.get("/v1/commands/my%2Fscope/a/b%20%C3%BC")
	status.want(t, 200)
	c := read[wire.CommandStatus](t, status)
	if c.Scope != "my/scope" || c.Key != "a/b ü" || c.Status != transitions.Succeeded || c.Code != 201 || c.Instance != id ||
		c.Position != 1 || c.Version != 1 || c.Workflow != "parcel" || c.Transition != "pack" || c.Problem != nil ||
		!c.ExpiresAt.After(c.CreatedAt) {
		t.Errorf("%+v", c)
	}
	assert.Equalf(t, string(created.body), string(c.Result), "the status has the result %s, the answer was %s", c.Result, created.body)
	tag := status.header.Get("ETag")
	same := s.get("/v1/commands/my%2Fscope/a/b%20%C3%BC", "If-None-Match", tag)
	assert.Truef(t, tag != "" && same.status == 304, "with its own tag %s: %d", tag, same.status)
	status = s.get("/v1/commands/" + url.PathEscape("parcel:"+id.String()) + "/k")
	status.want(t, 200)
	c = read[wire.CommandStatus](t, status)
	assert.Truef(t, c.Status == transitions.FailedFinal && c.Code == 412 && string(c.Problem) == string(refused.body) && c.Result == nil,
		"%+v; the answer was %s", c, refused.body)
	s.get("/v1/commands/my%2Fscope/nothing").wantProblem(t, 404, workflow.CommandNotFound)
	s.get("/v1/commands/my%2Fscope/a/b%20%C3%BC", "Pawl-Tenant", "other").wantProblem(t, 404, workflow.CommandNotFound)
}

func TestWorkflowsDescribeThemselves(t *testing.T) {
	s := newServer(t)
	list := read[wire.WorkflowList](t, s.get("/v1/workflows"))
	assert.Truef(t, len(list.Workflows) == 2 && list.Workflows[0].Name == "delivery" && list.Workflows[1].Name == "parcel" &&
		list.Workflows[1].Version == 1 && len(list.Workflows[1].Hash) == 64,
		"%+v", list)
	a := s.get("/v1/workflows/parcel")
	a.want(t, 200)
	d := read[workflow.Description](t, a)
	assert.Truef(t, len(d.Transitions) == 7 && len(d.States) == 3 && strings.Contains(string(d.Transitions[0].Payload), `"weight"`),
		"%+v", d)
	same := s.get("/v1/workflows/parcel?version=1", "If-None-Match", a.header.Get("ETag"))
	assert.Equalf(t, 304, same.status, "with its own tag %s", a.header.Get("ETag"))
	s.get("/v1/workflows/parcel?version=7").wantProblem(t, 404, workflow.WorkflowNotFound)
	s.get("/v1/workflows/nothing").wantProblem(t, 404, workflow.WorkflowNotFound)
}

func TestDiagramsAreNegotiated(t *testing.T) {
	s := newServer(t)
	layouts := s.api.CountLayouts()
	id := s.packed("1").String()
	for _, path := range []string{"/v1/workflows/parcel/diagram", "/v1/instances/" + id + "/diagram"} {
		for _, c := range []struct{ query, accept, want, begins string }{
			{"", "", "image/svg+xml", "<svg"},
			{"", "*/*", "image/svg+xml", "<svg"},
			{"", "text/vnd.mermaid", "text/vnd.mermaid", "stateDiagram"},
			{"", "image/svg+xml;q=0.1, text/vnd.graphviz", "text/vnd.graphviz", "digraph"},
			{"?format=dot", "", "text/vnd.graphviz", "digraph"},
			{"?format=mermaid", "text/html", "text/vnd.mermaid", "stateDiagram"},
			{"?format=svg", "text/vnd.mermaid", "image/svg+xml", "<svg"},
		} {
			a := s.get(path+c.query, "Accept", c.accept)
			a.want(t, 200)
			assert.Truef(t, a.header.Get("Content-Type") == c.want && strings.Contains(string(a.body), c.begins),
				"%s%s, Accept %q: %s %.100s", path, c.query, c.accept, a.header.Get("Content-Type"), a.body)
		}
		s.get(path, "Accept", "application/pdf").wantProblem(t, 406, workflow.NotAcceptable)
		s.get(path+"?format=pdf").wantProblem(t, 400, workflow.InvalidRequest)
	}
	assert.Equal(t, int64(1), layouts.Load(), "layouts of one workflow")
	s.get("/v1/workflows/nothing/diagram").wantProblem(t, 404, workflow.WorkflowNotFound)
	s.get("/v1/instances/"+uuid.NewString()+"/diagram").wantProblem(t, 404, workflow.InstanceNotFound)
}

func TestReadByBusinessKey(t *testing.T) {
	s := newServer(t)
	a := s.post("/v1/workflows/parcel/label", "k", `{"to":"Linz","label":"L/1"}`)
	a.want(t, http.StatusCreated)
	id := read[transitions.Result](t, a).Instance.String()
	for _, what := range []string{"", "/history", "/transitions", "/diagram"} {
		byID := s.do(http.MethodGet, "/v1/instances/"+id+what, nil)
		byID.want(t, http.StatusOK)
		byKey := s.do(http.MethodGet, "/v1/workflows/parcel/keys/L%2F1"+what, nil)
		byKey.want(t, http.StatusOK)
		assert.Equalf(t, string(byKey.body), string(byID.body), "%s by id: %s; by business key: %s", what, byID.body, byKey.body)
	}
}

func TestUnknownBusinessKeyIsNamed(t *testing.T) {
	s := newServer(t)
	named := func(a answer, name string) {
		t.Helper()
		assert.Contains(t, a.wantProblem(t, 404, workflow.InstanceNotFound).Detail, name, "named")
	}
	const path, ops, key = "/v1/workflows/parcel/keys/L%2F7", "/v1/ops/workflows/parcel/keys/L%2F7", `the business key "L/7"`
	for _, what := range []string{"", "?version=1", "?at=2030-01-01T00:00:00Z", "/history", "/children", "/transitions", "/diagram"} {
		named(s.get(path+what), key)
	}
	named(s.get(ops), key)
	for what, body := range map[string]string{path + "/send": `{}`, path + "/send?dry_run=true": `{}`, ops + "/pause": `{"reason":"x"}`,
		ops + "/resume": `{"reason":"x"}`, ops + "/migrate": `{"to":1,"reason":"x"}`, ops + "/migrate?dry_run=true": `{"to":1,"reason":"x"}`,
		ops + "/correct": `{"state":"sent","reason":"x"}`} {
		named(s.post(what, what, body), key)
	}
	id := uuid.NewString()
	named(s.get("/v1/instances/"+id+"/history"), id)
	named(s.post("/v1/instances/"+id+"/send", "by-id", `{}`), id)
	named(s.post("/v1/ops/instances/"+id+"/pause", "by-id", `{"reason":"x"}`), id)
	s.post("/v1/workflows/parcel/label", "k", `{"to":"Linz","label":"L/7"}`).want(t, http.StatusCreated)
	named(s.get(path+"?version=9"), "version 9")
	named(s.get(path+"?at=2000-01-01T00:00:00Z"), "2000-01-01")
}
