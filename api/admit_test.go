package api_test

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/workflow"
)

func TestTenantRate_RetryAfter(t *testing.T) {
	s := newServer(t, func(c *api.Config) { c.Limits.Rate, c.Limits.Burst = 0.01, 5 })
	pack := func(key string, headers ...string) answer {
		t.Helper()
		return s.post("/v1/workflows/parcel/pack", key, `{"to":"Wien"}`, headers...)
	}
	pack("1").want(t, 201)
	pack("1").want(t, 201)                  // a replay is a command, too
	pack("3", "If-Match", "x").want(t, 400) // what is malformed is none
	item := `{"workflow":"parcel","transition":"pack","key":"b","payload":{"to":"Wien"}}`
	s.bulk("application/json", "["+item+","+item+"]", "").want(t, 200)
	before := s.rows()
	a := s.bulk("application/json", "["+item+","+item+"]", "") // one is left
	a.wantProblem(t, 429, workflow.RateLimited)
	after, err := strconv.Atoi(a.header.Get("Retry-After"))
	assert.Truef(t, err == nil && after >= 2 && after <= 100, "Retry-After %q", a.header.Get("Retry-After"))
	s.post("/v1/workflows/parcel/pack?dry_run=true", "5", `{"to":"Wien"}`).want(t, 201)
	pack("6").wantProblem(t, 429, workflow.RateLimited)
	s.post("/v1/workflows/parcel/pack?dry_run=true", "6", `{"to":"Wien"}`).wantProblem(t, 429, workflow.RateLimited)
	if after := s.rows(); after["command"] != before["command"] {
		t.Errorf("rows before %v, after %v", before, after)
	}
	s.bulk("application/json", "["+strings.Repeat(item+",", 5)+item+"]", "").wantProblem(t, 413, workflow.TooLarge) // it never could
	pack("1", "Pawl-Tenant", "other").want(t, 201)
	s.get("/v1/instances").want(t, 200) // reading is no command
}

// The limit of a credential applies in addition to its tenant's; a request that one refuses does not count against the other.
func TestCredentialRate_Headers(t *testing.T) {
	s := newServer(t, func(c *api.Config) {
		c.Limits.Rate, c.Limits.Burst, c.Limits.CredentialRate, c.Limits.CredentialBurst = 0.01, 4, 0.001, 2
	})
	pack := func(actor, tenant, credential string) answer {
		t.Helper()
		a := s.post("/v1/workflows/parcel/pack?dry_run=true", "k", `{"to":"Wien"}`, "Pawl-Actor", actor)
		if got, want := a.header.Values("RateLimit-Policy"), []string{`"tenant";q=4;w=400`, `"credential";q=2;w=2000`}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		got := strings.Join(a.header.Values("RateLimit"), ", ")
		assert.Truef(t, strings.Contains(got, `"tenant";r=`+tenant+`;t=`) && strings.Contains(got, `"credential";r=`+credential+`;t=`),
			"%s: %s, want %s and %s", actor, got, tenant, credential)
		return a
	}
	pack("ann", "3", "1").want(t, 201)
	pack("ann", "2", "0").want(t, 201)
	refused := pack("ann", "2", "0")
	assert.Contains(t, refused.wantProblem(t, 429, workflow.RateLimited).Detail, "the credential sends")
	after, err := strconv.Atoi(refused.header.Get("Retry-After"))
	assert.Truef(t, err == nil && after >= 100 && after <= 1000, "Retry-After %q", refused.header.Get("Retry-After"))
	pack("bob", "1", "1").want(t, 201)
	pack("eve", "0", "1").want(t, 201)
	assert.Contains(t, pack("eve", "0", "1").wantProblem(t, 429, workflow.RateLimited).Detail, "the tenant sends")
}

// A caller gets no more by another credential: the rate is that of the actor.
func TestCredentialRateIsOfEachActor(t *testing.T) {
	callers := map[string]api.Caller{
		"ann's key":           {Actor: "ann", Proof: auth.Proof{Kind: auth.APIKey, By: "k1"}},
		"ann's other key":     {Actor: "ann", Proof: auth.Proof{Kind: auth.APIKey, By: "k2"}},
		"ann's token":         {Actor: "ann", Proof: auth.Proof{Kind: auth.JWT, By: "https://idp.example"}},
		"ann's ticket":        {Actor: "ann", Proof: auth.Proof{Kind: auth.Ticket, By: "key k3 by gateway"}},
		"bob's key":           {Actor: "bob", Proof: auth.Proof{Kind: auth.APIKey, By: "k4"}},
		"ann's key elsewhere": {Actor: "ann", Tenant: "acme", Proof: auth.Proof{Kind: auth.APIKey, By: "k5"}},
	}
	s := newServer(t, func(c *api.Config) {
		c.Limits.CredentialRate, c.Limits.CredentialBurst = 0.001, 3
		c.Identify = func(r *http.Request) (api.Caller, error) {
			caller := callers[r.Header.Get("Authorization")]
			caller.Grants, caller.Roles = auth.Grants{{Right: auth.Submit}}, []string{"*"}
			return caller, nil
		}
	})
	for _, c := range []struct {
		credential string
		status     int
	}{{"ann's key", 201}, {"ann's other key", 201}, {"ann's token", 201}, {"ann's ticket", 429}, {"ann's key", 429}, {"bob's key", 201},
		{"ann's key elsewhere", 201}} {
		a := s.post("/v1/workflows/parcel/pack?dry_run=true", "k", `{"to":"Wien"}`, "Authorization", c.credential)
		assert.Equalf(t, c.status, a.status, "%s %s", c.credential, a.body)
	}
}
