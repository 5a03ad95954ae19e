package api_test

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Twelve parcels to three cities, of which the first six are light and two are sent.
func TestListFilters(t *testing.T) {
	s := newServer(t)
	var between time.Time
	for i := range 12 {
		n := strconv.Itoa(i)
		a := s.post("/v1/workflows/parcel/label", n,
			`{"to":"`+[]string{"Wien", "Graz", "Linz & Wels"}[i%3]+`","weight":`+strconv.Itoa(i*20)+`,"label":"L/`+n+`"}`)
		a.want(t, 201)
		if i == 2 {
			between = read[wire.Instance](t, s.get(a.header.Get("Location"))).CreatedAt.Add(time.Microsecond)
		}
	}
	for _, key := range []string{"0", "4"} {
		s.post("/v1/workflows/parcel/keys/L%2F"+key+"/send", "s", `{}`).want(t, 200)
	}
	at := url.QueryEscape(between.Format(time.RFC3339Nano))
	for query, want := range map[string]int{
		"": 12, "?workflow=parcel": 12, "?workflow=parcel&state=packed": 10, "?workflow=parcel&business_key=L%2F3": 1,
		"?workflow=parcel&business_key=L": 0, "?attr.to=" + url.QueryEscape("Linz & Wels"): 4, "?attr.heavy=yes&attr.to=Wien": 2,
		"?attr.to.prefix=Li": 4, "?attr.to.from=H&attr.to.before=W": 4, "?attr.colour=red": 0, "?open=true": 10, "?open=false": 2,
		"?workflow=parcel&definition=1": 12, "?workflow=parcel&definition=2": 0, "?state=sent&state=packed": 12,
		"?created_before=" + at: 3, "?created_after=" + at: 9, "?updated_before=" + at: 2, "?updated_after=" + at + "&open=false": 2,
		"?created_before=" + at + "&order=updated": 3,
	} {
		page := read[wire.InstancePage](t, s.get("/v1/instances"+query))
		assert.Lenf(t, page.Instances, want, "%q", query)
		assert.Empty(t, page.Next, query)
	}
	for _, order := range []string{"created", "updated"} {
		seen, pages := map[uuid.UUID]bool{}, 0
		for cursor := ""; pages == 0 || cursor != ""; pages++ {
			page := read[wire.InstancePage](t, s.get("/v1/instances?limit=5&order="+order+"&cursor="+cursor))
			for _, i := range page.Instances {
				seen[i.ID] = true
			}
			cursor = page.Next
		}
		assert.Truef(t, len(seen) == 12 && pages == 3, "%s: %d instances on %d pages", order, len(seen), pages)
	}
	for query, want := range map[string]inspect.Counts{
		"?workflow=parcel":               {Total: 12},
		"?open=true":                     {Total: 10},
		"?state=sent&state=lost":         {Total: 2},
		"?all_tenants=true&state=packed": {Total: 10},
	} {
		c := read[inspect.Counts](t, s.get("/v1/counts"+query))
		assert.Truef(t, c.Total == want.Total && c.Exact && c.Counts[0].Workflow == "parcel" && c.Counts[0].Definition == 1, "%q: %+v", query, c)
	}
	assert.Empty(t, read[wire.InstancePage](t, s.get("/v1/instances", "Pawl-Tenant", "other")).Instances, "of another tenant")
	s.get("/v1/instances?workflow=nothing").wantProblem(t, 404, workflow.WorkflowNotFound)
}

func TestInstanceIsShownWithTag(t *testing.T) {
	s := newServer(t)
	a := s.post("/v1/workflows/parcel/label", "k", `{"to":"Wien","weight":7,"label":"größe/7 %"}`)
	a.want(t, 201)
	path := a.header.Get("Location")
	byID := s.get(path)
	byID.want(t, 200)
	tag := byID.header.Get("ETag")
	i := read[wire.Instance](t, byID)
	assert.Truef(t, strings.HasPrefix(tag, `"1.`) && !i.CreatedAt.IsZero() && i.UpdatedAt.Equal(i.CreatedAt), "%s %+v", tag, i)
	i.ID, i.CreatedAt, i.UpdatedAt = uuid.Nil, time.Time{}, time.Time{}
	assert.Equal(t, wire.Instance{Workflow: "parcel", Definition: 1, BusinessKey: "größe/7 %", State: packed, Open: true, Version: 1,
		Data: []byte(`{"to":"Wien","weight":7,"stamped":0}`), Attributes: map[string]string{"to": "Wien"}}, i)
	same := s.get(path, "If-None-Match", "W/"+tag)
	assert.Truef(t, same.status == 304 && len(same.body) == 0 && same.header.Get("ETag") == tag, "unchanged: %d %s", same.status, same.body)

	due := time.Now().UTC().Add(time.Hour).Truncate(time.Second)
	s.post(path+"/send", "later", `{"via":"ship"}`, "Pawl-Not-Before", due.Format(time.RFC3339), "Pawl-Actor", "ann").want(t, 202)
	moved := s.get(path, "If-None-Match", tag)
	moved.want(t, 200)
	v := read[wire.InstanceView](t, moved)
	assert.Truef(t, len(v.Scheduled) == 1 && v.Scheduled[0].Key == "later" && v.Scheduled[0].Due.Equal(due) && v.Version == 1, "%+v", v)
	s.post(path+"/stamp", "st", `{"price":1}`, "If-Match", tag).want(t, 200)
	head := s.do(http.MethodHead, path, nil)
	assert.Truef(t, strings.HasPrefix(head.header.Get("ETag"), `"2.`) && len(head.body) == 0, "HEAD: %v", head.header)
	s.get(path, "Pawl-Tenant", "other").wantProblem(t, 404, workflow.InstanceNotFound)
	s.get("/v1/workflows/nothing/keys/x").wantProblem(t, 404, workflow.WorkflowNotFound)
	for _, what := range []string{"", "/history", "/transitions", "/diagram"} {
		key := s.get("/v1/workflows/parcel/keys/" + url.PathEscape("größe/7 %") + what)
		assert.Equal(t, string(s.get(path+what).body), string(key.body), what)
	}
}

func TestHistoryPagesAndPastVersions(t *testing.T) {
	s := newServer(t)
	a := s.post("/v1/workflows/parcel/label", "1", `{"to":"Wien","label":"L-1"}`)
	path := a.header.Get("Location")
	s.post(path+"/stamp", "2", `{}`).want(t, 200)
	s.post(path+"/send", "last", `{"via":"rail"}`, "Pawl-Actor", "bob", "Idempotency-Scope", "post").want(t, 200)
	var all []wire.Entry
	for after, pages := int64(0), 0; pages == 0 || after != 0; pages++ {
		page := read[wire.History](t, s.get(path+"/history?limit=2&after="+strconv.FormatInt(after, 10)))
		all, after = append(all, page.Entries...), page.NextAfter
	}
	for i, e := range all {
		assert.Truef(t, e.Version == int64(i)+1 && e.Position == int64(i)+1 && len(e.Hash) == 64, "entry %d: %+v", i, e)
		past := s.get(path + "?version=" + strconv.Itoa(i+1))
		got := read[wire.PastInstance](t, past)
		assert.Truef(t, got.Version == e.Version && got.State == e.To && string(got.Data) == string(e.Data) && got.Newest == 3 &&
			got.Open == (i < 2) && got.UpdatedAt.Equal(e.At) && past.header.Get("ETag") == "", "version %d: %s", e.Version, past.body)
		at := url.QueryEscape(e.At.In(time.FixedZone("", 2*3600)).Format(time.RFC3339Nano))
		assert.Equal(t, string(past.body), string(s.get("/v1/workflows/parcel/keys/L-1?at="+at).body), at)
	}
	last := all[len(all)-1]
	assert.Truef(t, len(all) == 3 && last.From == packed && last.To == sent && last.Actor == "bob" && last.Reason == "via rail" &&
		last.Scope == "post" && last.Key == "last" && string(last.Payload) == `{"via":"rail"}` && last.Transition == "send",
		"%d entries, the last %+v", len(all), last)
	for query, want := range map[string]int64{"": 3, "?instance=" + path[len("/v1/instances/"):]: 3} {
		v := read[inspect.Verification](t, s.get("/v1/ops/verify"+query))
		assert.Truef(t, v.Intact && v.Entries == want, "%q: %+v", query, v)
	}
	s.exec(`UPDATE pawl.audit SET data = NULL, data_digest = sha256('x') WHERE version = 2`)
	body := string(s.get(path + "?version=2").body)
	assert.Truef(t, strings.Contains(body, `"erased":true`) && !strings.Contains(body, `"data"`), "erased: %s", body)
}

func TestOptionsHaveReasons(t *testing.T) {
	s := newServer(t)
	path := "/v1/instances/" + s.packed("500").String() + "/transitions"
	for roles, want := range map[string]workflow.Code{"porter": workflow.RoleRequired, "clerk": workflow.GuardRefused} {
		all := map[string]wire.Option{}
		for _, o := range read[wire.Options](t, s.get(path, "Pawl-Roles", roles)).Transitions {
			all[o.Transition] = o
		}
		send := all["send"]
		assert.Truef(t, len(all) == 3 && all["stamp"].Allowed && !send.Allowed && len(send.Reasons) == 1 && send.Reasons[0].Code == want,
			"a %s can %+v", roles, all)
	}
}

func TestCommandStatusRepeatsAnswer(t *testing.T) {
	s := newServer(t)
	created := s.post("/v1/workflows/parcel/pack", "a/b ü", `{"to":"Wien"}`, "Idempotency-Scope", "my/scope")
	created.want(t, 201)
	id := read[transitions.Result](t, created).Instance
	refused := s.post("/v1/instances/"+id.String()+"/stamp", "k", `{}`, "If-Match", `"9"`)
	refused.want(t, 412)

	const path = "/v1/commands/my%2Fscope/a/b%20%C3%BC"
	status := s.get(path)
	c := read[wire.CommandStatus](t, status)
	assert.Truef(t, c.Scope == "my/scope" && c.Key == "a/b ü" && c.Status == transitions.Succeeded && c.Code == 201 && c.Instance == id &&
		c.Position == 1 && c.Version == 1 && c.Workflow == "parcel" && c.Transition == "pack" && c.Problem == nil &&
		c.ExpiresAt.After(c.CreatedAt) && string(c.Result) == string(created.body), "%+v", c)
	assert.Equal(t, 304, s.get(path, "If-None-Match", status.header.Get("ETag")).status)
	c = read[wire.CommandStatus](t, s.get("/v1/commands/"+url.PathEscape("parcel:"+id.String())+"/k"))
	assert.Truef(t, c.Status == transitions.FailedFinal && c.Code == 412 && string(c.Problem) == string(refused.body) && c.Result == nil,
		"%+v; the answer was %s", c, refused.body)
}

func TestWorkflowDescriptions(t *testing.T) {
	s := newServer(t)
	list := read[wire.WorkflowList](t, s.get("/v1/workflows")).Workflows
	assert.Truef(t, len(list) == 2 && list[0].Name == "delivery" && list[1].Name == "parcel" && list[1].Version == 1 && len(list[1].Hash) == 64,
		"%+v", list)
	d := read[workflow.Description](t, s.get("/v1/workflows/parcel"))
	assert.Truef(t, len(d.Transitions) == 7 && len(d.States) == 3 && strings.Contains(string(d.Transitions[0].Payload), `"weight"`),
		"%+v", d)
	for _, path := range []string{"/v1/workflows/parcel?version=7", "/v1/workflows/nothing", "/v1/workflows/nothing/diagram"} {
		s.get(path).wantProblem(t, 404, workflow.WorkflowNotFound)
	}
}

func TestDiagramFormats(t *testing.T) {
	s := newServer(t)
	layouts := s.api.CountLayouts()
	id := s.packed("1").String()
	for _, path := range []string{"/v1/workflows/parcel/diagram", "/v1/instances/" + id + "/diagram"} {
		for _, c := range []struct{ query, accept, want, begins string }{
			{"", "*/*", "image/svg+xml", "<svg"},
			{"", "text/vnd.mermaid", "text/vnd.mermaid", "stateDiagram"},
			{"", "image/svg+xml;q=0.1, text/vnd.graphviz", "text/vnd.graphviz", "digraph"},
			{"?format=mermaid", "text/html", "text/vnd.mermaid", "stateDiagram"},
			{"?format=svg", "text/vnd.mermaid", "image/svg+xml", "<svg"},
		} {
			a := s.get(path+c.query, "Accept", c.accept)
			assert.Truef(t, a.status == 200 && a.header.Get("Content-Type") == c.want && strings.Contains(string(a.body), c.begins),
				"%s%s, Accept %q: %d %s %.100s", path, c.query, c.accept, a.status, a.header.Get("Content-Type"), a.body)
		}
	}
	assert.Equal(t, int64(1), layouts.Load(), "layouts of one workflow")
}

func TestUnknownBusinessKeyIsNamed(t *testing.T) {
	s := newServer(t)
	named := func(a answer, name string) {
		t.Helper()
		assert.Contains(t, a.wantProblem(t, 404, workflow.InstanceNotFound).Detail, name, "named")
	}
	const path, ops, key = "/v1/workflows/parcel/keys/L%2F7", "/v1/ops/workflows/parcel/keys/L%2F7", `the business key "L/7"`
	for _, what := range []string{path, path + "?version=1", path + "?at=2030-01-01T00:00:00Z", path + "/history", path + "/children",
		path + "/transitions", path + "/diagram", ops} {
		named(s.get(what), key)
	}
	for what, body := range map[string]string{path + "/send": `{}`, path + "/send?dry_run=true": `{}`, ops + "/pause": `{"reason":"x"}`,
		ops + "/resume": `{"reason":"x"}`, ops + "/migrate": `{"to":1,"reason":"x"}`, ops + "/migrate?dry_run=true": `{"to":1,"reason":"x"}`,
		ops + "/correct": `{"state":"sent","reason":"x"}`} {
		named(s.post(what, what, body), key)
	}
	id := uuid.NewString()
	named(s.get("/v1/instances/"+id+"/history"), id)
	s.post("/v1/workflows/parcel/label", "k", `{"to":"Linz","label":"L/7"}`).want(t, http.StatusCreated)
	named(s.get(path+"?version=9"), "version 9")
	named(s.get(path+"?at=2000-01-01T00:00:00Z"), "2000-01-01")
}
