package api_test

import (
	"net/http"
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
