package api_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func TestOperatorsSeeHowKeysAndRetentionStand(t *testing.T) {
	s := newServer(t)
	for range 3 {
		s.post("/v1/workflows/parcel/pack", "k", `{"to":"Wien"}`)
	}
	s.stuck("s")
	s.post("/v1/workflows/parcel/pack", "k", `{"to":"Wien"}`, "Pawl-Tenant", "other")
	a := s.get("/v1/ops/keys")
	a.want(t, 200)
	k := read[inspect.Keys](t, a)
	assert.True(t, k.Tenant == transitions.DefaultTenant && k.Stuck == 1 && !k.At.IsZero() && !k.OldestInFlight.IsZero(), a.body)
	pack := inspect.ScopeCount{Tenant: transitions.DefaultTenant, Scope: "parcel:pack", New: 1, Replayed: 2}
	assert.Truef(t, len(k.Scopes) != 0 && k.Scopes[0] == pack, "scopes: %+v", k.Scopes)
	other := read[inspect.Keys](t, s.get("/v1/ops/keys", "Pawl-Tenant", "other"))
	assert.Truef(t, other.Stuck == 0 && len(other.Scopes) == 1 && other.Scopes[0].New == 1, "another tenant: %+v", other)
	s.get("/v1/ops/keys", "Pawl-Roles", "clerk").wantProblem(t, 403, workflow.Forbidden)
	all := read[inspect.Keys](t, s.get("/v1/ops/keys?all_tenants=true"))
	assert.Truef(t, all.Tenant == "" && all.Stuck == 1 && len(all.Scopes) == len(k.Scopes)+1, "all tenants: %+v", all)
	s.get("/v1/ops/keys?all_tenants=true", "Pawl-Roles", "operator").wantProblem(t, 403, workflow.Forbidden)
	r := read[inspect.Retention](t, s.get("/v1/ops/retention"))
	assert.NotEqualf(t, 0, len(r.Partitions), "retention: %+v", r)
	s.get("/v1/ops/retention", "Pawl-Roles", "operator").wantProblem(t, 403, workflow.Forbidden)
	s.get("/v1/ops/keys?tenant=other").wantProblem(t, 400, workflow.InvalidRequest)
}

func TestMetricsAreForOperatorsOfAllTenants(t *testing.T) {
	newServer(t).get("/metrics").wantProblem(t, 404, workflow.NotFound) // none are configured
	s := newServer(t, func(c *api.Config) {
		c.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain; version=0.0.4")
			_, _ = io.WriteString(w, "pawl_up 1\n")
		})
	})
	a := s.get("/metrics")
	a.want(t, 200)
	assert.Equal(t, "pawl_up 1\n", string(a.body), a.body)
	s.get("/metrics", "Pawl-Roles", "operator").wantProblem(t, 403, workflow.Forbidden) // of one tenant
	s.get("/metrics", "Pawl-Roles", api.OperatorOfAll).want(t, 200)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/metrics", nil)
	require.NoError(t, err)
	r.Host = "rebound.example"
	s.send(r).wantProblem(t, 403, workflow.Forbidden)
}
