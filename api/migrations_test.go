package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

type box struct {
	Weight int `json:"weight"`
}

// boxes are two versions of a workflow; heavy boxes stay on the first.
func boxes() []workflow.Source {
	weigh := func(_ *workflow.Call, d *box, p box) error { *d = p; return nil }
	nothing := func(*workflow.Call, *box, workflow.None) error { return nil }
	define := func(version int, open workflow.State) *workflow.Definition[box] {
		return workflow.Define("box", version, workflow.Start("fill", open,
			weigh).BusinessKey(func(p box) string { return fmt.Sprint("B-", p.Weight) }),
			workflow.On("ship", workflow.From(open), "shipped", nothing)).Final("shipped")
	}
	plan := workflow.FromVersion(1, func(old box) (box, error) {
		if old.Weight > 100 {
			return box{}, workflow.Refuse("it is too heavy")
		}
		return old, nil
	}).State("open", "packed")
	return []workflow.Source{define(1, "open"), define(2, "packed").Migrate(plan)}
}

// operator sends a request of an operator with a JSON body.
func (s *server) operator(method, path, body string, headers ...string) answer {
	s.t.Helper()
	return s.do(method, "/v1/ops/"+path, []byte(body), append([]string{"Content-Type", "application/json"}, headers...)...)
}

func TestInstancesAreMigratedOverHTTP(t *testing.T) {
	s := newServerOf(t, boxes(), nil)
	require.NoError(t, s.engine.Admin().BeginVersion(t.Context(), "box", 1, ""))
	path := func(weight int) string {
		a := s.post("/v1/workflows/box/fill", fmt.Sprint(weight), fmt.Sprintf(`{"weight":%d}`, weight))
		a.want(t, http.StatusCreated)
		return "/v1/ops/instances/" + read[transitions.Result](t, a).Instance.String()
	}
	one, heavy := path(1), path(101)
	path(2)

	preview := s.operator("POST", "migrations?dry_run=true", `{"workflow":"box","from":1,"to":2}`)
	p := read[inspect.MigrationPreview](t, preview)
	assert.Truef(t, len(p.States) == 1 && p.States[0] == (inspect.MigrationState{State: "open", To: "packed", Count: 3, Migrated: 2, Rejected: 1}) &&
		len(p.Refusals) == 1 && p.Refusals[0].Reason == "it is too heavy" && preview.header.Get("Pawl-Dry-Run") == "true", "%s", preview.body)
	tried := s.post(one+"/migrate?dry_run=true", "d", `{"to":2}`)
	r := read[transitions.Result](t, tried)
	assert.Truef(t, r.State == "packed" && r.Version == 2 && tried.header.Get("Pawl-Dry-Run") == "true", "%s", tried.body)
	byKey := "/v1/ops/workflows/box/keys/B-1/migrate"
	for i, c := range []struct {
		path, body, ifMatch string
		status              int
	}{
		{one + "/migrate", `{"to":2}`, `"2"`, 412}, {one + "/migrate", `{"to":2}`, `2`, 400}, {one + "/migrate", `{"to":2}`, `"1"`, 200},
		{byKey, `{"to":2}`, `"9"`, 412}, {byKey, `{"to":2}`, "*", 200}, {heavy + "/migrate", `{"to":2}`, "*", 409},
		{"/v1/ops/workflows/box/keys/B-101/migrate", `{"to":2}`, "*", 409}, {heavy + "/migrate", `{"to":3}`, "*", 503},
		{heavy + "/migrate", `{}`, "*", 400},
	} {
		a := s.post(c.path, fmt.Sprint("m-", i), c.body, "If-Match", c.ifMatch)
		assert.Equalf(t, c.status, a.status, "%s %s: %s", c.path, c.body, a.body)
	}

	const all = `{"workflow":"box","from":1,"to":2,"reason":"all","per_second":1000}`
	begun := s.operator("POST", "migrations", all, "Pawl-Actor", "olga", "Idempotency-Key", "k")
	begun.want(t, http.StatusAccepted)
	m := read[inspect.Migration](t, begun)
	at := fmt.Sprint("migrations/", m.ID)
	await.Eventually(t, "the migration ends", func() bool {
		m = read[inspect.Migration](t, s.get("/v1/ops/"+at))
		return !m.EndedAt.IsZero()
	})
	assert.Truef(t, m.Migrated == 1 && m.Rejected == 1 && m.Expected == 2 && m.Actor == "olga" && m.Reason == "all" &&
		len(m.Refusals) == 1 && m.Refusals[0].State == "open", "%+v", m)
	again := s.operator("POST", "migrations", all, "Pawl-Actor", "olga", "Idempotency-Key", "k") // is begun once with a key
	assert.Equal(t, m.ID, read[inspect.Migration](t, again).ID)
	s.operator("POST", "migrations", all, "Pawl-Actor", "bob", "Idempotency-Key", "k").wantProblem(t, 422, workflow.KeyReused)
	s.operator("POST", "migrations", all, "Idempotency-Key", strings.Repeat("k", 256)).wantProblem(t, 400, workflow.KeyInvalid)
	s.operator("POST", "migrations", all, "Idempotency-Scope", "s", "Idempotency-Key", "k").wantProblem(t, 400, workflow.InvalidRequest)
	list := read[api.MigrationList](t, s.get("/v1/ops/migrations"))
	assert.Truef(t, len(list.Migrations) == 1 && list.Migrations[0].ID == m.ID &&
		slices.Equal(list.Plans, []inspect.MigrationPlan{{Workflow: "box", From: 1, To: 2}}), "%+v", list)
	assert.True(t, read[inspect.Migration](t, s.operator("POST", at+"/stop", `{}`)).StoppedAt.IsZero(), "it has ended")
	for body, code := range map[string]workflow.Code{`{"workflow":"none","from":1,"to":2}`: workflow.WorkflowNotFound,
		`{"workflow":"box","from":2,"to":1}`: workflow.NotOnThisNode, `{"workflow":"box","from":1,"to":2,"per_second":-1}`: workflow.InvalidRequest} {
		s.operator("POST", "migrations", body).wantProblem(t, code.Info().Status, code)
	}
	s.exec("INSERT INTO pawl.instance_migration (workflow, from_version, to_version, per_second, actor, created_at, expected, next_at) " +
		"VALUES ('box', 1, 2, 1, 'ann', now(), 0, now() + interval '9 years')")
	s.operator("POST", "migrations", all).wantProblem(t, http.StatusConflict, workflow.Conflict)
	at = fmt.Sprint("migrations/", read[api.MigrationList](t, s.get("/v1/ops/migrations")).Migrations[0].ID)
	s.operator("POST", at+"/stop", `{"reason":"`+strings.Repeat("x", 5000)+`"}`).wantProblem(t, 400, workflow.InvalidRequest)
	s.operator("POST", at+"/stop", `{"reason":"wrong boxes"}`, "Pawl-Actor", "olga").want(t, http.StatusOK)
	m = read[inspect.Migration](t, s.operator("POST", at+"/stop", "")) // the first stop is kept
	assert.Truef(t, m.StoppedBy == "olga" && m.StopReason == "wrong boxes" && !m.StoppedAt.IsZero(), "%+v", m)
}

func TestInstanceIsCorrectedOverHTTP(t *testing.T) {
	s := newServerOf(t, boxes(), nil)
	s.post("/v1/workflows/box/fill", "1", `{"weight":1}`).want(t, http.StatusCreated)
	const path, weighed = "/v1/ops/workflows/box/keys/B-1", `{"data":{"weight":3},"reason":"weighed anew"}`
	id := "/v1/ops/instances/" + transitions.InstanceID(transitions.DefaultTenant, "box", "B-1").String()
	tried := s.post(path+"/correct?dry_run=true", "d", weighed)
	assert.True(t, read[transitions.Result](t, tried).Version == 2 && tried.header.Get("Pawl-Dry-Run") == "true", string(tried.body))
	for body, code := range map[string]workflow.Code{`{"data":{"weight":3}}`: workflow.InvalidRequest, `{"reason":"x"}`: workflow.InvalidRequest,
		`{"data":{"colour":3},"reason":"x"}`: workflow.InvalidPayload, `{"data":[],"reason":"x"}`: workflow.InvalidPayload,
		`{"state":"lost","reason":"x"}`: workflow.CorrectionRefused} {
		s.post(id+"/correct", uuid.NewString(), body).wantProblem(t, code.Info().Status, code)
	}
	for _, one := range []string{id, path} {
		s.post(one+"/correct", uuid.NewString(), weighed, "If-Match", `"9"`).wantProblem(t, 412, workflow.VersionConflict)
	}
	s.post(id+"/correct", "c", weighed).want(t, http.StatusOK)
	assert.Contains(t, string(s.get("/v1/workflows/box/keys/B-1").body), `"weight":3`)
	s.post(path+"/correct", "d", `{"state":"shipped","reason":"it was seen in Graz"}`).want(t, http.StatusOK)
	s.post(path+"/correct", "e", `{"state":"packed","reason":"x"}`).wantProblem(t, http.StatusConflict, workflow.CorrectionRefused)
}

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
	assert.Falsef(t, len(list) != 4 || !list[0].Begins || list[1].Begins || list[0].Open != 1 || list[1].Open != 1 || len(list[0].Nodes) != 1, "%+v", list)
	s.do(http.MethodDelete, box, nil).want(t, http.StatusNoContent)
	s.do(http.MethodDelete, box, nil).want(t, http.StatusNoContent)
	begun("c", 2)

	s.do(http.MethodPut, box, []byte(`{"version":0}`), json...).wantProblem(t, http.StatusBadRequest, workflow.InvalidRequest)
	s.do(http.MethodPut, box, []byte(`{"version":3}`), json...).wantProblem(t, http.StatusNotFound, workflow.WorkflowNotFound)
	s.do(http.MethodDelete, "/v1/ops/begins/nothing", nil).wantProblem(t, http.StatusNotFound, workflow.WorkflowNotFound)
}
