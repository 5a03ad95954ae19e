package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
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

func TestInstancesAreMigratedOverHTTP(t *testing.T) {
	s := newServerOf(t, boxes(), nil)
	require.NoError(t, s.engine.Admin().BeginVersion(t.Context(), "box", 1, ""))
	json := []string{"Content-Type", "application/json"}
	path := func(weight int) string {
		a := s.post("/v1/workflows/box/fill", fmt.Sprint(weight), fmt.Sprintf(`{"weight":%d}`, weight))
		a.want(t, http.StatusCreated)
		return "/v1/ops/instances/" + read[transitions.Result](t, a).Instance.String()
	}
	one := path(1)
	path(2)
	heavy := path(101)

	preview := s.do(http.MethodPost, "/v1/ops/migrations?dry_run=true", []byte(`{"workflow":"box","from":1,"to":2}`), json...)
	preview.want(t, http.StatusOK)
	p := read[inspect.MigrationPreview](t, preview)
	assert.True(t, len(p.States) == 1 && p.States[0] == (inspect.MigrationState{State: "open", To: "packed", Count: 3, Migrated: 2,
		Rejected: 1}) && len(p.Refusals) == 1 && p.Refusals[0].Reason == "it is too heavy" && preview.header.Get("Pawl-Dry-Run") == "true",
		preview.body)
	tried := s.do(http.MethodPost, one+"/migrate?dry_run=true", []byte(`{"to":2}`), json...)
	tried.want(t, http.StatusOK)
	r := read[transitions.Result](t, tried)
	assert.True(t, r.State == "packed" && r.Version == 2 && tried.header.Get("Pawl-Dry-Run") == "true", tried.body)
	s.do(http.MethodPost, heavy+"/migrate?dry_run=true", []byte(`{"to":2}`), json...).wantProblem(t, http.StatusConflict,
		workflow.MigrationRefused)
	s.post(one+"/migrate", "v", `{"to":2}`, "If-Match", `"2"`).wantProblem(t, http.StatusPreconditionFailed, workflow.VersionConflict)
	s.post(one+"/migrate", "w", `{"to":2}`, "If-Match", `2`).wantProblem(t, http.StatusBadRequest, workflow.InvalidRequest)
	s.post(one+"/migrate", "m", `{"to":2,"reason":"first"}`, "If-Match", `"1"`).want(t, http.StatusOK)
	s.post("/v1/ops/workflows/box/keys/B-1/migrate", "u", `{"to":2}`, "If-Match", `"9"`).wantProblem(t, http.StatusPreconditionFailed,
		workflow.VersionConflict)
	s.post("/v1/ops/workflows/box/keys/B-1/migrate", "n", `{"to":2}`).want(t, http.StatusOK) // it is there
	s.post(heavy+"/migrate", "m", `{"to":2}`).wantProblem(t, http.StatusConflict, workflow.MigrationRefused)
	s.post("/v1/ops/workflows/box/keys/B-101/migrate", "n", `{"to":2}`).wantProblem(t, http.StatusConflict, workflow.MigrationRefused)
	s.post(heavy+"/migrate", "x", `{"to":3}`).wantProblem(t, http.StatusServiceUnavailable, workflow.NotOnThisNode)
	s.post(heavy+"/migrate", "x", `{}`).wantProblem(t, http.StatusBadRequest, workflow.InvalidRequest)

	begun := s.do(http.MethodPost, "/v1/ops/migrations", []byte(`{"workflow":"box","from":1,"to":2,"reason":"all","per_second":1000}`),
		append(json, "Pawl-Actor", "olga")...)
	begun.want(t, http.StatusAccepted)
	m := read[inspect.Migration](t, begun)
	at := fmt.Sprint("/v1/ops/migrations/", m.ID)
	await.Eventually(t, "the migration ends", func() bool {
		m = read[inspect.Migration](t, s.get(at))
		return !m.EndedAt.IsZero()
	})
	assert.Truef(t, m.Migrated == 1 && m.Rejected == 1 && m.Expected == 2 && m.Actor == "olga" && m.Reason == "all" &&
		len(m.Refusals) == 1 && m.Refusals[0].State == "open",
		"%+v", m)
	list := read[api.MigrationList](t, s.get("/v1/ops/migrations"))
	assert.Truef(t, len(list.Migrations) == 1 && list.Migrations[0].ID == m.ID, "%+v", list)
	list = read[api.MigrationList](t, s.get("/v1/ops/migrations"))
	assert.Truef(t, len(list.Plans) == 1 && list.Plans[0] == (inspect.MigrationPlan{Workflow: "box", From: 1, To: 2}),
		"%+v", list.Plans)
	stopped := s.do(http.MethodPost, at+"/stop", []byte(`{}`), json...)
	stopped.want(t, http.StatusOK) // it has ended, and stays so
	now := read[inspect.Migration](t, stopped)
	assert.Truef(t, now.StoppedAt.IsZero(), "%+v", now)
	s.get("/v1/ops/migrations/99").wantProblem(t, http.StatusNotFound, workflow.NotFound)
	s.do(http.MethodPost, "/v1/ops/migrations/99/stop", []byte(`{}`), json...).wantProblem(t, http.StatusNotFound, workflow.NotFound)
	for body, code := range map[string]workflow.Code{`{"workflow":"none","from":1,"to":2}`: workflow.WorkflowNotFound,
		`{"workflow":"box","from":2,"to":1}`:                 workflow.NotOnThisNode,
		`{"workflow":"box","from":1,"to":2,"per_second":-1}`: workflow.InvalidRequest} {
		s.do(http.MethodPost, "/v1/ops/migrations", []byte(body), json...).wantProblem(t, code.Info().Status, code)
	}
	s.exec("INSERT INTO pawl.instance_migration (workflow, from_version, to_version, per_second, actor, created_at, expected, next_at) " +
		"VALUES ('box', 1, 2, 1, 'ann', now(), 0, now() + interval '9 years')")
	s.do(http.MethodPost, "/v1/ops/migrations", []byte(`{"workflow":"box","from":1,"to":2}`), json...).wantProblem(t, http.StatusConflict,
		workflow.Conflict)
	at = fmt.Sprint("/v1/ops/migrations/", read[api.MigrationList](t, s.get("/v1/ops/migrations")).Migrations[0].ID)
	for _, body := range []string{`{"reason":"` + strings.Repeat("x", 5000) + `"}`, `{"reason":"a\u0000"}`, `{"reason":1}`, `{"why":"x"}`} {
		s.do(http.MethodPost, at+"/stop", []byte(body), json...).wantProblem(t, http.StatusBadRequest, workflow.InvalidRequest)
	}
	for range 2 { // and the first to ask stays who has asked
		s.do(http.MethodPost, at+"/stop", []byte(`{"reason":"wrong boxes"}`), append(json, "Pawl-Actor", "olga")...).want(t, http.StatusOK)
		s.do(http.MethodPost, at+"/stop", nil, json...).want(t, http.StatusOK)
	}
	if m := read[inspect.Migration](t, s.get(at)); m.StoppedBy != "olga" || m.StopReason != "wrong boxes" || m.StoppedAt.IsZero() {
		t.Errorf("%+v", m)
	}
}

// With a key a migration is begun once, also after its end.
func TestAMigrationIsBegunOnceWithAKey(t *testing.T) {
	s := newServerOf(t, boxes(), nil)
	begin := func(key, body string, headers ...string) answer {
		return s.do(http.MethodPost, "/v1/ops/migrations", []byte(body),
			append([]string{"Content-Type", "application/json", "Idempotency-Key", key}, headers...)...)
	}
	const body = `{"workflow":"box","from":1,"to":2,"reason":"all"}`
	first := begin("k", body)
	first.want(t, http.StatusAccepted)
	m := read[inspect.Migration](t, first)
	await.Eventually(t, "the migration ends", func() bool {
		return !read[inspect.Migration](t, s.get(fmt.Sprint("/v1/ops/migrations/", m.ID))).EndedAt.IsZero()
	})
	again := read[inspect.Migration](t, begin("k", body))
	assert.Truef(t, again.ID == m.ID && !again.EndedAt.IsZero(), "%+v", again)
	begin("k", `{"workflow":"box","from":1,"to":2}`).wantProblem(t, 422, workflow.KeyReused)
	begin("k", body, "Pawl-Actor", "bob").wantProblem(t, 422, workflow.KeyReused)
	begin(strings.Repeat("k", 256), body).wantProblem(t, 400, workflow.KeyInvalid)
	begin("", body).wantProblem(t, 400, workflow.KeyMissing)
	begin("k", body, "Idempotency-Scope", "s").wantProblem(t, 400, workflow.InvalidRequest)
	other := read[inspect.Migration](t, begin("another", body))
	assert.NotEqualf(t, m.ID, other.ID, "%+v", other)
}

func TestAnInstanceIsCorrectedOverHTTP(t *testing.T) {
	s := newServerOf(t, boxes(), nil)
	s.post("/v1/workflows/box/fill", "1", `{"weight":1}`).want(t, http.StatusCreated)
	const path = "/v1/ops/workflows/box/keys/B-1"
	id := "/v1/ops/instances/" + transitions.InstanceID(transitions.DefaultTenant, "box", "B-1").String()
	tried := s.do(http.MethodPost, path+"/correct?dry_run=true", []byte(`{"data":{"weight":3},"reason":"weighed anew"}`), "Content-Type",
		"application/json")
	tried.want(t, http.StatusOK)
	assert.True(t, read[transitions.Result](t, tried).Version == 2 && tried.header.Get("Pawl-Dry-Run") == "true", tried.body)
	for body, code := range map[string]workflow.Code{`{"data":{"weight":3}}`: workflow.InvalidRequest,
		`{"reason":"x"}`:                     workflow.InvalidRequest,
		`{"data":{"colour":3},"reason":"x"}`: workflow.InvalidPayload, `{"data":{"weight":"much"},"reason":"x"}`: workflow.InvalidPayload,
		`{"data":[],"reason":"x"}`: workflow.InvalidPayload, `{"state":"lost","reason":"x"}`: workflow.CorrectionRefused} {
		s.post(id+"/correct", uuid.NewString(), body).wantProblem(t, code.Info().Status, code)
	}
	for _, one := range []string{id, path} {
		s.post(one+"/correct", uuid.NewString(), `{"data":{"weight":3},"reason":"weighed anew"}`, "If-Match", `"9"`).wantProblem(t,
			http.StatusPreconditionFailed, workflow.VersionConflict)
	}
	s.post(id+"/correct", "c", `{"data":{"weight":3},"reason":"weighed anew"}`).want(t, http.StatusOK)
	view := s.get("/v1/workflows/box/keys/B-1")
	assert.Contains(t, string(view.body), `"weight":3`, view.body)
	s.post(path+"/correct", "d", `{"state":"shipped","reason":"it was seen in Graz"}`).want(t, http.StatusOK)
	s.post(path+"/correct", "e", `{"state":"packed","reason":"x"}`).wantProblem(t, http.StatusConflict, workflow.CorrectionRefused)
}
