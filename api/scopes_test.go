package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// No caller takes a key in a scope in which another caller's commands have theirs.
func TestScopeNeedsGrant(t *testing.T) {
	t.Parallel()
	g := newGuarded(t)
	g.post("/v1/workflows/parcel/label", "two", `{"to":"Graz","label":"L-2"}`, g.with("submit")...).want(t, http.StatusCreated)
	const narrow, whole, broad = "submit:parcel#L-1/stamp", "submit:parcel", "submit"
	own := "parcel:" + g.instance.String()
	for _, tt := range []struct {
		scope, grants string
		status        int
		code          workflow.Code
	}{
		{own, narrow, 200, ""},
		{"parcel:stamp", narrow, 200, ""}, // of no creation: nobody else's
		{"parcel:label", narrow, 400, workflow.ScopeInvalid},
		{"parcel:label", broad, 400, workflow.ScopeInvalid},
		{"parcel:" + uuid.NewString(), broad, 400, workflow.ScopeInvalid},
		{"parcel:", broad, 400, workflow.ScopeInvalid},
		{"parcel", whole, 400, workflow.ScopeInvalid},
		{"delivery:entrust", broad, 400, workflow.ScopeInvalid},
		{"desk", narrow, 403, workflow.Forbidden},
		{"desk", whole, 403, workflow.Forbidden},
		{"desk", broad, 200, ""},
		{"ann:desk", narrow, 200, ""},
		{"ann", narrow, 403, workflow.Forbidden},
		{"bob:desk", narrow, 403, workflow.Forbidden},
		{"bob:desk", broad, 200, ""},
	} {
		for _, how := range []string{"alone", "in bulk"} {
			key := uuid.NewString()
			status, code := 0, workflow.Code("")
			if how == "alone" {
				a := g.post("/v1/workflows/parcel/keys/L-1/stamp", key, `{}`, append(g.with(tt.grants), "Idempotency-Scope", tt.scope)...)
				if status = a.status; status >= 400 {
					code = read[transitions.Problem](t, a).Code
				}
			} else {
				item := `[{"workflow":"parcel","business_key":"L-1","transition":"stamp","key":"` + key + `","scope":"` + tt.scope + `"}]`
				one := read[[]wire.BulkResult](t, g.post("/v1/commands", "", item, g.with(tt.grants)...))[0]
				if status = one.Status; status >= 400 {
					var p transitions.Problem
					require.NoError(t, json.Unmarshal(one.Body, &p))
					code = p.Code
				}
			}
			assert.Truef(t, status == tt.status && code == tt.code,
				"scope %q with %q, %s: %d %s, want %d %s", tt.scope, tt.grants, how, status, code, tt.status, tt.code)
		}
	}
}

// How long a key stays is for callers who may submit everything of the workflow.
func TestRetentionNeedsGrant(t *testing.T) {
	t.Parallel()
	g := newGuarded(t)
	for grants, status := range map[string]int{"submit:parcel#L-1/stamp": 403, "submit:parcel/stamp": 403, "submit:parcel": 200, "submit": 200} {
		for _, header := range []string{"Pawl-Replay-For", "Pawl-Tombstone-For"} {
			for _, path := range []string{"/v1/workflows/parcel/keys/L-1/stamp", "/v1/instances/" + g.instance.String() + "/stamp"} {
				g.post(path, uuid.NewString(), `{}`, append(g.with(grants), header, "60")...).want(t, status)
			}
		}
	}
}

// The instance that has a business key is another caller's. A creation with that key tells a caller who may not read it nothing else.
func TestExistingInstanceNeedsRead(t *testing.T) {
	t.Parallel()
	g := newGuarded(t) // it has the parcel L-1
	g.post("/v1/workflows/parcel/claim", "c", `{"to":"Graz","label":"L-2"}`, g.with("submit")...).want(t, http.StatusCreated)
	secrets := []string{g.instance.String(), "packed", `"version"`, `"at"`, `"state"`}
	for _, tt := range []struct {
		name, path, body string
		status           int
	}{
		{"creation", "/v1/workflows/parcel/label", `{"to":"Graz","label":"L-1"}`, 200},
		{"dry run", "/v1/workflows/parcel/label?dry_run=true", `{"to":"Graz","label":"L-1"}`, 200},
		{"by business key", "/v1/workflows/parcel/keys/L-1/label", `{"to":"Graz","label":"L-1"}`, 200},
		{"refused", "/v1/workflows/parcel/claim", `{"to":"Graz","label":"L-1"}`, 409},
		{"refused dry run", "/v1/workflows/parcel/claim?dry_run=true", `{"to":"Graz","label":"L-1"}`, 409},
	} {
		for _, grants := range []string{"submit", "submit read:delivery", "submit:parcel/label submit:parcel/claim", "submit read:parcel#L-2"} {
			a := g.post(tt.path, uuid.NewString(), tt.body, g.with(grants)...)
			a.want(t, tt.status)
			seen := string(a.body) + a.header.Get("ETag") + a.header.Get("Location")
			for _, secret := range secrets {
				assert.NotContainsf(t, seen, secret, "%s with %q", tt.name, grants)
			}
			assert.Falsef(t, tt.status == 200 && string(a.body) != `{"workflow":"parcel","transition":"label","existing":true}`,
				"%s with %q: %s", tt.name, grants, a.body)
		}
		for _, grants := range []string{"submit read", "submit read:parcel", "submit read:parcel#L-1"} {
			a := g.post(tt.path, uuid.NewString(), tt.body, g.with(grants)...)
			a.want(t, tt.status)
			assert.Containsf(t, string(a.body), g.instance.String(),
				"%s with %q does not name the instance: %s", tt.name, grants, a.body)
		}
	}
	for _, dry := range []string{"", "?dry_run=true"} {
		items := `[{"workflow":"parcel","transition":"label","key":"b1` + dry + `","payload":{"to":"Graz","label":"L-1"}},` +
			`{"workflow":"parcel","transition":"claim","key":"b2` + dry + `","payload":{"to":"Graz","label":"L-1"}}]`
		a := g.post("/v1/commands"+dry, "", items, g.with("submit")...)
		for _, one := range read[[]wire.BulkResult](t, a) {
			if body := string(one.Body); strings.Contains(body, g.instance.String()) || strings.Contains(body, "packed") {
				t.Errorf("bulk%s: %d %s", dry, one.Status, body)
			}
		}
	}
}

// A caller that could have sent a command may cancel it, and sees only its status.
func TestCancelAnswerNeedsRead(t *testing.T) {
	t.Parallel()
	g := newGuarded(t)
	path := "/v1/commands/parcel:label/k"
	for grants, whole := range map[string]bool{"submit": false, "submit read:delivery": false, "submit read": true, "submit read:parcel#L-1": true} {
		a := g.do(http.MethodDelete, path, nil, g.with(grants)...)
		a.want(t, 200)
		got := strings.Contains(string(a.body), g.instance.String()) && strings.Contains(string(a.body), `"result"`)
		assert.Equalf(t, whole, got, "with %q: %s", grants, a.body)
		s := read[wire.CommandStatus](t, a)
		assert.Truef(t, s.Status == "succeeded" && s.Key == "k", "with %q: %+v", grants, s)
	}
}

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
