package api_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/auth/apikey"
	"github.com/pawlhq/pawl/workflow"
)

// ask sends a request about keys, with a token of ann of acme who has grants and is a clerk.
func (g *guarded) ask(method, path, body, grants string) answer {
	g.t.Helper()
	token := g.idp.Token(map[string]any{"scope": grants, "roles": []string{"clerk"}})
	headers := []string{"Authorization", "Bearer " + token}
	if body != "" {
		headers = append(headers, "Content-Type", "application/json")
	}
	return g.do(method, "/v1/keys"+path, []byte(body), headers...)
}

var lines = regexp.MustCompile(`pawl_[0-9A-Za-z]{12}_[0-9A-Za-z]{36}`)

func TestAPIKey_Lifecycle(t *testing.T) {
	g := newGuarded(t)
	ends := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	body := `{"name":"billing","roles":["clerk"],"grants":["read:parcel","submit:parcel/stamp"],"expires_at":"` + ends.Format(time.RFC3339) +
		`"}`
	const may = "keys read submit"
	a := g.ask("POST", "", body, may)
	a.want(t, 201)
	made := read[api.APIKeyText](t, a)
	if a.header.Get("Location") != "/v1/keys/"+made.ID || a.header.Get("Cache-Control") != "no-store" || !lines.MatchString(made.Key) ||
		made.Tenant != "acme" || made.Actor != "ann" || !strings.HasPrefix(made.CreatedBy, "ann (jwt ") || !made.ExpiresAt.Equal(ends) {
		t.Errorf("%+v %v", made, a.header)
	}
	p := g.ask("POST", "", body, may).wantProblem(t, 409, workflow.Conflict) // who has not got the answer
	assert.Contains(t, p.Detail, made.ID)
	with := func(text string) []string { return []string{"Authorization", "Bearer " + text} }
	stamp := "/v1/instances/" + g.instance.String() + "/stamp"
	g.post(stamp, "1", `{}`, with(made.Key)...).want(t, 200)
	g.post("/v1/workflows/parcel/pack", "2", `{"to":"x"}`, with(made.Key)...).wantProblem(t, 403, workflow.Forbidden)
	entries := read[wire.History](t, g.get("/v1/instances/"+g.instance.String()+"/history", with(made.Key)...)).Entries
	e := entries[len(entries)-1]
	assert.Truef(t, e.Actor == "ann" && e.Proof == "key "+made.ID, "%s, %q", e.Actor, e.Proof)
	me := read[wire.Me](t, g.get("/v1/me?can=submit:parcel/stamp", with(made.Key)...))
	assert.Truef(t, me.Proof == (wire.MeProof{Kind: "key", By: made.ID}) && me.Until.Equal(ends) && me.Can != nil && me.Can.Allowed,
		"%+v", me)

	rotated := read[api.APIKeyText](t, g.ask("POST", "/"+made.ID+"/rotate", "", may))
	assert.Truef(t, rotated.ID == made.ID && rotated.Key != made.Key && strings.HasPrefix(rotated.RotatedBy, "ann (jwt ") &&
		!rotated.FormerEnds.Before(time.Now().Add(23*time.Hour)),
		"%+v", rotated)
	for _, text := range []string{made.Key, rotated.Key} {
		g.get("/v1/me", with(text)...).want(t, 200)
	}
	g.ask("POST", "/"+made.ID+"/rotate", "", may).wantProblem(t, 409, workflow.Conflict)
	again := read[api.APIKeyText](t, g.ask("POST", "/"+made.ID+"/rotate", `{"lost":true}`, may))
	g.get("/v1/me", with(rotated.Key)...).wantProblem(t, 401, workflow.Unauthorized)
	g.get("/v1/me", with(made.Key)...).want(t, 200)
	g.get("/v1/me", with(again.Key)...).want(t, 200)
	for _, body := range []string{`{"seconds":-1}`, `{"seconds":99999999}`, `{"seconds":1,"lost":true}`, `{"hours":1}`} {
		g.ask("POST", "/"+made.ID+"/rotate", body, may).wantProblem(t, 400, workflow.InvalidRequest)
	}

	shown := g.ask("GET", "/"+made.ID, "", "keys")
	assert.NotContainsf(t, string(shown.body), "pawl_", "the text is shown again: %s", shown.body)
	for range 2 {
		g.ask("DELETE", "/"+made.ID, "", "keys").want(t, 204)
	}
	g.get("/v1/me", with(again.Key)...).wantProblem(t, 401, workflow.Unauthorized)
	k := read[api.APIKey](t, g.ask("GET", "/"+made.ID, "", "keys"))
	assert.Truef(t, !k.RevokedAt.IsZero() && k.RevokedBy != "", "%+v", k)

	var row string
	require.NoError(t, g.pool.QueryRow(t.Context(), "SELECT string_agg(k::text, ' ') FROM pawl.api_key AS k").Scan(&row))
	for _, text := range []string{made.Key, rotated.Key, again.Key} {
		secret := text[len(text)-36:]
		assert.NotContains(t, g.log.String()+row, secret[:30], "a secret is in the log, or in the table")
	}
}

func TestAPIKeys_PagesAndTenants(t *testing.T) {
	g := newGuarded(t) // which has one of acme
	for range 2 {
		g.make("acme", "read")
		g.make("other", "read")
	}
	count := func(query, grants string) (n int) {
		for cursor := ""; ; {
			page := read[api.APIKeyPage](t, g.ask("GET", "?limit=2"+query+"&cursor="+cursor, "", grants))
			n += len(page.Keys)
			if cursor = page.Next; cursor == "" {
				return n
			}
		}
	}
	if own, all := count("", "keys"), count("&all_tenants=true", "keys operate:all"); own != 3 || all != 5 {
		t.Errorf("%d, and %d in all", own, all)
	}
	g.ask("GET", "?all_tenants=true", "", "keys operate").wantProblem(t, 403, workflow.Forbidden)
	g.ask("GET", "?cursor=AAAA", "", "keys").wantProblem(t, 400, workflow.InvalidRequest)
	other, _ := g.make("other", "keys")
	for _, c := range [][2]string{{"GET", ""}, {"POST", "/rotate"}, {"DELETE", ""}} {
		foreign := g.ask(c[0], "/"+other.ID+c[1], "", "keys").wantProblem(t, 404, workflow.NotFound)
		none := g.ask(c[0], "/"+strings.Repeat("0", 12)+c[1], "", "keys").wantProblem(t, 404, workflow.NotFound)
		assert.Equal(t, none.Detail, foreign.Detail, "and of none")
		g.ask(c[0], "/"+other.ID+c[1]+"?all_tenants=true", "", "keys").wantProblem(t, 403, workflow.Forbidden)
	}
	g.ask("GET", "/"+other.ID+"?all_tenants=true", "", "keys operate:all").want(t, 200)
	g.ask("POST", "/"+other.ID+"/rotate?all_tenants=true", "", "keys operate:all act-as").want(t, 200)
	g.ask("DELETE", "/"+other.ID+"?all_tenants=true", "", "keys operate:all").want(t, 204)
}

// A key cannot have more grants than its creator, and its text is not shown to a holder of fewer grants.
func TestAPIKeyNeedsItsGrants(t *testing.T) {
	g := newGuarded(t)
	before := g.rows()["api_key"]
	for _, c := range []struct{ grants, body, lacks string }{
		{"keys", `"grants":["read"]`, `the grant "read"`},
		{"keys read:parcel", `"grants":["read:parcel","read:courier"]`, `the grant "read:courier"`},
		{"keys submit:parcel/stamp", `"grants":["submit:parcel#L-1"]`, `the grant "submit:parcel#L-1"`},
		{"keys operate", `"grants":["operate:all"]`, `the grant "operate:all"`},
		{"keys read", `"grants":["read"],"roles":["*"]`, `also "*"`},
		{"keys read act-as:parcel", `"grants":["read"],"actor":"bob"`, `the grant "act-as"`},
		{"keys read act-as operate", `"grants":["read"],"tenant":"other"`, `the grant "operate:all"`},
		{"keys read operate:all", `"grants":["read"],"tenant":"other"`, `the grant "act-as"`},
		{"keys read:parcel act-as operate:all", `"grants":["read"],"tenant":"other"`, `the grant "read"`},
	} {
		p := g.ask("POST", "", `{"name":"k",`+c.body+`}`, c.grants).wantProblem(t, 403, workflow.Forbidden)
		assert.Containsf(t, p.Detail, c.lacks, "%s, %s", c.grants, c.body)
	}
	for _, body := range []string{``, `{"name":"k","grants":[]}`, `{"name":"k","grants":["write"]}`, `{"name":"","grants":["read"]}`,
		`{"name":"k","grants":["read"],"actor":"pawl:timer"}`, `{"name":"k","grants":["read"],"expires_at":"2020-01-01T00:00:00Z"}`} {
		g.ask("POST", "", body, "keys read act-as").wantProblem(t, 400, workflow.InvalidRequest)
	}
	now := g.rows()["api_key"]
	assert.Equalf(t, before, now, "%d keys were made", now-before)
	for i, c := range []struct{ grants, body string }{
		{"keys read", `"grants":["read","read:parcel","keys"],"roles":["clerk"]`},
		{"keys submit:parcel", `"grants":["submit:parcel/stamp","submit:parcel#L-1/stamp"]`},
		{"keys read act-as", `"grants":["read"],"actor":"bob"`},
		{"keys read act-as operate:all", `"grants":["read","operate"],"tenant":"other"`},
	} {
		g.ask("POST", "", `{"name":"`+string(rune('a'+i))+`",`+c.body+`}`, c.grants).want(t, 201)
	}

	powerful, _ := g.make("acme", "read operate")
	p := g.ask("POST", "/"+powerful.ID+"/rotate", "", "keys read").wantProblem(t, 403, workflow.Forbidden)
	assert.Contains(t, p.Detail, `the grant "operate"`)
	g.ask("DELETE", "/"+powerful.ID, "", "keys").want(t, 204)
}

// Whoever steals a key for an hour has no more than the hour.
func TestAPIKeyEndsWithItsCreator(t *testing.T) {
	g := newGuarded(t)
	k := apikey.Key{Tenant: "acme", Name: "short", Actor: "ann", CreatedBy: "test", ExpiresAt: time.Now().Add(time.Hour)}
	made, _ := g.make("acme", "keys read")
	k.Grants = made.Grants
	_, text, err := g.keys.Create(t.Context(), k)
	require.NoError(t, err)
	with := []string{"Authorization", "Bearer " + text}
	until := func(d time.Duration) string {
		return `{"name":"` + uuid.NewString() + `","grants":["read"],"expires_at":"` + time.Now().Add(d).UTC().Format(time.RFC3339) + `"}`
	}
	g.post("/v1/keys", "1", until(59*time.Minute), with...).want(t, 201)
	g.post("/v1/keys", "2", until(2*time.Hour), with...).wantProblem(t, 403, workflow.Forbidden)
	g.post("/v1/keys", "3", `{"name":"x","grants":["read"]}`, with...).wantProblem(t, 403, workflow.Forbidden)
	g.do("POST", "/v1/keys/"+made.ID+"/rotate", nil, with...).wantProblem(t, 403, workflow.Forbidden)
}

// Where no keys are taken there are none to be made.
func TestWithoutKeysThereAreNoAddressesForThem(t *testing.T) {
	s := newServer(t, func(c *api.Config) {
		c.Identify = allowed
	})
	for _, c := range [][2]string{{"GET", ""}, {"POST", ""}, {"GET", "/x"}, {"POST", "/x/rotate"}, {"DELETE", "/x"}} {
		s.do(c[0], "/v1/keys"+c[1], nil).wantProblem(t, 404, workflow.NotFound)
	}
}

// allowed is whoever asks, with every grant.
func allowed(r *http.Request) (api.Caller, error) {
	c, err := api.Loopback(r)
	c.Grants = auth.All()
	return c, err
}
