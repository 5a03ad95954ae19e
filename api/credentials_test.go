package api_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/uuid"
	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/auth/apikey"
	"github.com/pawlhq/pawl/auth/authtest"
	"github.com/pawlhq/pawl/auth/jwt"
	"github.com/pawlhq/pawl/schema"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// rightly is how each route answers who has the grant for it, and nothing else; see guarded.fill for
// what is asked. A route that is added needs an entry.
var rightly = map[string]int{
	"GET /v1/me":       200,
	"POST /v1/tickets": 403, // of what he himself is not allowed to do
	"POST /v1/workflows/{workflow}/{transition}":                     400,
	"POST /v1/instances/{id}/{transition}":                           200,
	"POST /v1/workflows/{workflow}/keys/{business_key}/{transition}": 200,
	"POST /v1/commands":                                              200,
	"GET /v1/commands/{scope}/{key...}":                              200,
	"DELETE /v1/commands/{scope}/{key...}":                           200,
	"GET /v1/instances/{id}":                                         200,
	"GET /v1/workflows/{workflow}/keys/{business_key}":               200,
	"GET /v1/instances/{id}/children":                                200,
	"GET /v1/workflows/{workflow}/keys/{business_key}/children":      200,
	"GET /v1/instances/{id}/history":                                 200,
	"GET /v1/workflows/{workflow}/keys/{business_key}/history":       200,
	"GET /v1/instances/{id}/transitions":                             200,
	"GET /v1/workflows/{workflow}/keys/{business_key}/transitions":   200,
	"GET /v1/instances/{id}/diagram":                                 200,
	"GET /v1/workflows/{workflow}/keys/{business_key}/diagram":       200,
	"GET /v1/instances":                                              200,
	"GET /v1/counts":                                                 200,
	"GET /v1/workflows":                                              200,
	"GET /v1/workflows/{workflow}":                                   200,
	"GET /v1/workflows/{workflow}/diagram":                           200,
	"GET /v1/events":                                                 200,
	"GET /v1/stream":                                                 400,
	"POST /v1/inbox/{consumer}":                                      404,
	"GET /healthz":                                                   200,
	"GET /readyz":                                                    200,
	"GET /metrics":                                                   404,
	"GET /v1/ops/verify":                                             200,
	"GET /v1/ops/keys":                                               200,
	"GET /v1/ops/retention":                                          200,
	"GET /v1/ops/nodes":                                              200,
	"GET /v1/ops/versions":                                           200,
	"PUT /v1/ops/begins/{workflow}":                                  400,
	"DELETE /v1/ops/begins/{workflow}":                               204,
	"GET /v1/ops/instances/{id}":                                     200,
	"GET /v1/ops/workflows/{workflow}/keys/{business_key}":           200,
	"POST /v1/ops/instances/{id}/pause":                              200,
	"POST /v1/ops/workflows/{workflow}/keys/{business_key}/pause":    200,
	"POST /v1/ops/instances/{id}/resume":                             200,
	"POST /v1/ops/workflows/{workflow}/keys/{business_key}/resume":   200,
	"POST /v1/ops/instances/{id}/migrate":                            400,
	"POST /v1/ops/workflows/{workflow}/keys/{business_key}/migrate":  400,
	"POST /v1/ops/instances/{id}/correct":                            400,
	"POST /v1/ops/workflows/{workflow}/keys/{business_key}/correct":  400,
	"GET /v1/ops/migrations":                                         200,
	"POST /v1/ops/migrations":                                        400,
	"GET /v1/ops/migrations/{migration}":                             404,
	"POST /v1/ops/migrations/{migration}/stop":                       404,
	"GET /v1/ops/stuck":                                              200,
	"GET /v1/ops/commands":                                           200,
	"POST /v1/ops/commands/retry":                                    400,
	"POST /v1/ops/commands/resolve":                                  400,
	"POST /v1/ops/commands/abandon":                                  400,
	"GET /v1/ops/paused":                                             200,
	"PUT /v1/ops/paused/{workflow}":                                  204,
	"DELETE /v1/ops/paused/{workflow}":                               204,
	"GET /v1/ops/inbox":                                              200,
	"GET /v1/ops/inbox/body":                                         404,
	"GET /v1/ops/inbox/kept":                                         200,
	"GET /v1/ops/inbox/kept/message":                                 404,
	"POST /v1/ops/inbox/retry":                                       400,
	"POST /v1/ops/inbox/discard":                                     400,
	"GET /v1/ops/sinks":                                              200,
	"GET /v1/ops/sinks/{sink}":                                       404,
	"GET /v1/ops/sinks/{sink}/dead":                                  404,
	"POST /v1/ops/sinks/{sink}/redrive":                              400,
	"POST /v1/ops/sinks/{sink}/skip":                                 400,
	"POST /v1/ops/sinks/{sink}/move":                                 400,
	"POST /v1/ops/sinks/{sink}/pause":                                404,
	"POST /v1/ops/sinks/{sink}/resume":                               404,
	"POST /v1/ops/sinks/{sink}/forget":                               404,

	"GET /openapi.json":    200,
	"GET /asyncapi.json":   200,
	"GET /docs":            200,
	"GET /docs/page.js":    200,
	"GET /docs/rapidoc.js": 200,

	"GET /v1/keys":                   200,
	"POST /v1/keys":                  400,
	"GET /v1/keys/{api_key}":         200,
	"POST /v1/keys/{api_key}/rotate": 200,
	"DELETE /v1/keys/{api_key}":      204,
}

// guarded is a server that takes tokens and API keys, with an instance, a command and a key of the tenant acme.
type guarded struct {
	*server
	idp      *authtest.Provider
	keys     *apikey.Verifier
	instance uuid.UUID
	key      string // the id of one that may make keys
}

// lateKeys are the keys of a database that is there later.
type lateKeys struct{ *apikey.Verifier }

func newGuarded(t testing.TB, config ...func(*api.Config)) *guarded {
	t.Helper()
	g := &guarded{idp: authtest.NewProvider(t)}
	verifier, err := jwt.New(jwt.Config{Issuer: authtest.Issuer, Audience: []string{authtest.Audience}, Algorithms: []string{"ES256"},
		Keys: g.idp.Set()})
	require.NoError(t, err)
	keys := &lateKeys{}
	g.server = newServer(t, append(config, func(c *api.Config) {
		c.Keys = keys
		c.Identify = api.Bearer(func(ctx context.Context, credential string) (auth.Principal, error) {
			if strings.HasPrefix(credential, apikey.Prefix) {
				return g.keys.Verify(ctx, credential)
			}
			return verifier.Verify(ctx, credential)
		})
	})...)
	g.keys = apikey.NewVerifier(apikey.NewTable(g.pool, schema.For(schema.Default)),
		apikey.Config{Log: slog.New(slog.DiscardHandler)})
	keys.Verifier = g.keys
	g.vouched = g.keys.Good
	g.keys.Start()
	t.Cleanup(g.keys.Stop)
	made, _ := g.make("acme", "keys")
	g.key = made.ID
	a := g.post("/v1/workflows/parcel/label", "k", `{"to":"Graz","label":"L-1"}`, g.with("submit")...)
	a.want(t, http.StatusCreated)
	g.instance = read[transitions.Result](t, a).Instance
	return g
}

// token is one of a tenant, with grants.
func (g *guarded) token(tenant, grants string) string {
	return g.idp.Token(map[string]any{"tenant": tenant, "scope": grants})
}

// with is the header of a caller of acme with grants.
func (g *guarded) with(grants string) []string {
	return []string{"Authorization", "Bearer " + g.token("acme", grants)}
}

// make makes an API key of ann of a tenant.
func (g *guarded) make(tenant, grants string) (apikey.Key, string) {
	g.t.Helper()
	k := apikey.Key{Tenant: tenant, Name: uuid.NewString(), Actor: "ann", CreatedBy: "test"}
	var err error
	if k.Grants, err = auth.ParseGrants(grants); err != nil {
		g.t.Fatal(err)
	}
	made, text, err := g.keys.Create(g.t.Context(), k)
	if err != nil {
		g.t.Fatal(err)
	}
	return made, text
}

// withKey is the header of a caller with a key of a tenant.
func (g *guarded) withKey(tenant, grants string) []string {
	g.t.Helper()
	_, text := g.make(tenant, grants)
	return []string{"Authorization", "Bearer " + text}
}

// path returns a path of a route, with a value of its own for one name.
func (g *guarded) path(r *api.Route, name, value string) string {
	values := map[string]string{"id": g.instance.String(), "workflow": "parcel", "business_key": "L-1", "transition": "stamp",
		"scope": "parcel:label", "key": "k", "sink": "none", "consumer": "none", "api_key": g.key, "migration": "1"}
	if name != "" {
		values[name] = url.PathEscape(value)
	}
	path := r.Path
	for name, value := range values {
		path = strings.NewReplacer("{"+name+"}", value, "{"+name+"...}", value).Replace(path)
	}
	return path
}

// fill makes a request for a route.
func (g *guarded) fill(r *api.Route, headers ...string) *http.Request {
	g.t.Helper()
	query := ""
	for _, p := range r.Params {
		if p.In == api.InQuery && p.Required {
			query += "&" + p.Name + "=" + strings.Repeat("0", 64)
		}
	}
	request, err := http.NewRequestWithContext(g.t.Context(), r.Method, g.url+g.path(r, "", "")+strings.Replace(query, "&", "?", 1),
		strings.NewReader(bodies[r.Path]))
	if err != nil {
		g.t.Fatal(err)
	}
	if r.Body != nil && r.Body.Media != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	for _, p := range r.Params {
		if p.In == api.InHeader && p.Required {
			request.Header.Set(p.Name, uuid.NewString())
		}
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Add(headers[i], headers[i+1])
	}
	return request
}

var bodies = map[string]string{"/v1/commands": `[]`, "/v1/tickets": `{"grants":["read:parcel#L-1"]}`}

// wrong returns credentials that are refused, with the reason in the answer.
func (g *guarded) wrong() map[string][]string {
	now := time.Now()
	good := strings.Split(g.token("acme", "read"), ".")
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`))
	key := g.idp.Set()
	claims := authtest.Claims(nil)
	of := func(changes map[string]any) string { return "Bearer " + g.idp.Token(changes) }
	good2 := g.ticket("read", `{"grants":["read:parcel#L-1"]}`)
	dropped := g.forged(map[string]any{})
	g.drop()
	kept := g.forged(map[string]any{})
	revoked, revokedText := g.make("acme", auth.All().String())
	ended, endedText := g.make("acme", auth.All().String())
	removed, removedText := g.make("acme", auth.All().String())
	if _, err := g.keys.Revoke(g.t.Context(), "", revoked.ID, "test"); err != nil {
		g.t.Fatal(err)
	}
	for _, sql := range []string{"UPDATE pawl.api_key SET expires_at = created_at + interval '1 us' WHERE id = '" + ended.ID + "'",
		"DELETE FROM pawl.api_key WHERE id = '" + removed.ID + "'"} {
		if _, err := g.pool.Exec(g.t.Context(), sql); err != nil {
			g.t.Fatal(err)
		}
	}
	return map[string][]string{
		"a ticket that has expired: expired": {"Authorization", "Bearer " +
			g.forged(map[string]any{"until": now.Add(-time.Second).UnixMilli()})},
		"a ticket of a dropped key: unknown_key": {"Authorization", "Bearer " + dropped},
		"an altered ticket: signature":           {"Authorization", "Bearer " + graft(kept, good2)},
		"a ticket of alg none: algorithm":        {"Authorization", "Bearer pawlt_" + none + "." + strings.Split(kept, ".")[1] + "."},
		"a ticket that may everything: claims":   {"Authorization", "Bearer " + g.forged(map[string]any{"grants": auth.All().String()})},
		"a ticket of two hours: claims": {"Authorization", "Bearer " +
			g.forged(map[string]any{"until": now.Add(2 * time.Hour).UnixMilli()})},
		"a ticket that is cut: malformed":           {"Authorization", "Bearer " + kept[:len(kept)-50]},
		"a ticket of no key: unknown_key":           {"Authorization", "Bearer " + g.forged(map[string]any{"key": "k1"})},
		"a ticket of a revoked key: revoked":        {"Authorization", "Bearer " + g.forged(map[string]any{"key": revoked.ID})},
		"a ticket of a key that has ended: expired": {"Authorization", "Bearer " + g.forged(map[string]any{"key": ended.ID})},
		"none":                      nil,
		"another scheme: malformed": {"Authorization", "Basic eDp5"},
		"malformed":                 {"Authorization", "Bearer x.y.z"},
		"cut: malformed":            {"Authorization", "Bearer " + good[0] + "." + good[1]},
		"expired":                   {"Authorization", of(map[string]any{"exp": now.Add(-time.Hour).Unix()})},
		"not_yet_valid":             {"Authorization", of(map[string]any{"nbf": now.Add(time.Hour).Unix()})},
		"wrong_issuer":              {"Authorization", of(map[string]any{"iss": "https://evil.example"})},
		"wrong_audience":            {"Authorization", of(map[string]any{"aud": "someone"})},
		"alg none: algorithm":       {"Authorization", "Bearer " + none + "." + good[1] + "."},
		"the public key as secret: algorithm": {"Authorization",
			"Bearer " + authtest.Sign(g.t, jose.HS256, jose.JSONWebKey{Key: key, KeyID: "first"}, claims)},
		"unknown_key": {"Authorization", "Bearer " + authtest.NewKey(g.t, "other", jose.ES256).Sign(g.t, claims)},
		"signature":   {"Authorization", "Bearer " + authtest.NewKey(g.t, "first", jose.ES256).Sign(g.t, claims)},
		"claims":      {"Authorization", of(map[string]any{"tenant": nil})},

		"a mistyped key: malformed":            {"Authorization", "Bearer " + endedText[:len(endedText)-1] + "-"},
		"revoked":                              {"Authorization", "Bearer " + revokedText},
		"a key that has ended: expired":        {"Authorization", "Bearer " + endedText},
		"a key that is not there: unknown_key": {"Authorization", "Bearer " + removedText},
	}
}

// wantUnknown checks that a caller is not known, for the reason that the name of a case ends with.
func wantUnknown(t *testing.T, name string, a answer) {
	t.Helper()
	a.wantProblem(t, 401, workflow.Unauthorized)
	_, reason, named := strings.Cut(name, ": ")
	if !named {
		reason = name
	}
	want := fmt.Sprintf(`Bearer realm="pawl", error="invalid_token", error_description="%s"`, reason)
	if reason == "none" {
		want = `Bearer realm="pawl"`
	}
	assert.Equal(t, want, a.header.Get("WWW-Authenticate"), "it is challenged with")
}

// but is every grant without those that give a right.
func but(right auth.Right) string {
	var all auth.Grants
	for _, g := range auth.All() {
		if g.Right != right && (g.Right != auth.OperateAll || right != auth.Operate) {
			all = append(all, g)
		}
	}
	return all.String()
}

func TestEveryRouteIsClosedByDefault(t *testing.T) {
	g := newGuarded(t)
	wrong := g.wrong()
	for i, r := range api.Routes() {
		pattern := r.Method + " " + r.Path
		want, listed := rightly[pattern]
		if !listed {
			t.Errorf("%s has no entry", pattern)
			continue
		}
		for j, name := range slices.Sorted(maps.Keys(wrong)) {
			if testing.Short() && (i+j)%6 != 0 && name != "none" { // make test-long tries each of them at each route
				continue
			}
			t.Run(pattern+"/"+name, func(t *testing.T) {
				if a := g.send(g.fill(&r, wrong[name]...)); r.Grant != api.Public {
					wantUnknown(t, name, a)
				} else if a.status != want && a.status != 503 { // a database that is slow to answer is not ready
					t.Errorf("everybody is answered, and this one with %d", a.status)
				}
			})
		}
		if r.Grant == api.Public {
			continue
		}
		t.Run(pattern+"/too few grants", func(t *testing.T) {
			for _, headers := range [][]string{g.with(but(r.Grant)), g.withKey("acme", but(r.Grant))} {
				if a := g.send(g.fill(&r, headers...)); r.Grant != api.AnyCaller {
					p := a.wantProblem(t, 403, workflow.Forbidden)
					assert.Contains(t, p.Detail, `this takes the grant "`+string(r.Grant), "it does not say what is missing")
				}
			}
		})
		t.Run(pattern+"/another tenant", func(t *testing.T) {
			headers := []string{"Authorization", "Bearer " + g.token("other", auth.All().String())}
			if r.Method == http.MethodGet || strings.HasPrefix(r.Path, "/v1/keys") {
				headers = g.withKey("other", auth.All().String())
			}
			a := g.send(g.fill(&r, headers...))
			if a.status == 401 || a.status == 403 || a.status < 300 && strings.Contains(string(a.body), g.instance.String()) &&
				!strings.Contains(r.Path, "{business_key}/{transition}") { // which makes its own
				t.Errorf("%d %s", a.status, a.body)
			}
		})
		t.Run(pattern+"/the right grant", func(t *testing.T) {
			if r.Path == "/v1/stream" {
				return // see below
			}
			headers := [][]string{g.with(string(r.Grant))}
			if r.Method == http.MethodGet && r.Grant != api.AnyCaller {
				headers = append(headers, g.withKey("acme", string(r.Grant)))
			}
			for _, h := range headers {
				a := g.send(g.fill(&r, h...))
				assert.Equal(t, want, a.status, a.body)
			}
		})
	}
}

func TestEveryEventStreamIsClosedByDefault(t *testing.T) {
	g := newGuarded(t)
	for _, r := range api.Routes() {
		i := slices.IndexFunc(r.Answers, func(a api.Answer) bool { return a.Media == "text/event-stream" })
		if i < 0 {
			continue
		}
		pattern := r.Method + " " + r.Path
		ask := func(headers ...string) *http.Request {
			return g.fill(&r, append(headers, "Accept", "text/event-stream")...)
		}
		for name, headers := range g.wrong() {
			t.Run(pattern+"/"+name, func(t *testing.T) { wantUnknown(t, name, g.send(ask(headers...))) })
		}
		for _, right := range []auth.Right{r.Grant, r.Answers[i].Grant} {
			t.Run(pattern+"/without "+string(right), func(t *testing.T) {
				g.send(ask(g.with(but(right))...)).wantProblem(t, 403, workflow.Forbidden)
			})
		}
		t.Run(pattern+"/right", func(t *testing.T) {
			response, err := http.DefaultClient.Do(ask(g.with("read stream")...))
			require.NoError(t, err)
			defer response.Body.Close()
			assert.Truef(t, response.StatusCode == 200 && response.Header.Get("Content-Type") == "text/event-stream",
				"%d %s", response.StatusCode, response.Header)
		})
	}
}

// messages are what a client asks on a WebSocket, by the operation. One that is added needs an entry.
var messages = map[string]string{
	"subscribe":   `{"op":"subscribe","id":"a","after":0,"filter":{"workflow":"parcel"}}`,
	"watch":       `{"op":"watch","id":"a","scope":"parcel:label","key":"k"}`,
	"unsubscribe": `{"op":"unsubscribe","id":"b"}`,

	"authenticate": `{"op":"authenticate","id":"c","credential":"x.y.z"}`,
}

func TestWebSocketOperationsNeedGrants(t *testing.T) {
	g := newGuarded(t)
	for name, headers := range g.wrong() {
		t.Run(name, func(t *testing.T) {
			h := http.Header{}
			for i := 0; i < len(headers); i += 2 {
				h.Add(headers[i], headers[i+1])
			}
			_, response, err := websocket.DefaultDialer.DialContext(t.Context(), "ws"+strings.TrimPrefix(g.url, "http")+"/v1/stream", h)
			assert.Truef(t, err != nil && response != nil && response.StatusCode == 401 && response.Header.Get("WWW-Authenticate") != "",
				"%v, %v", response, err)
		})
	}
	for _, r := range api.Routes() {
		for _, o := range r.Operations {
			message, listed := messages[o.Name]
			if !listed {
				t.Errorf("the operation %s has no entry", o.Name)
				continue
			}
			elsewhere := g.dial(g.with(string(o.Grant) + ":courier " + but(o.Grant))...)
			other := g.dial("Authorization", "Bearer "+g.token("other", auth.All().String()))
			right := g.dial(g.with(string(o.Grant))...)
			for _, c := range []*wsClient{elsewhere, other, right} {
				c.send(message)
			}
			switch o.Name {
			case "subscribe":
				if m := elsewhere.next(); m.Op != "error" || m.Code != workflow.Forbidden || !strings.Contains(m.Detail, `"stream:parcel"`) {
					t.Errorf("%+v", m)
				}
				m := other.next()
				assert.Equalf(t, "subscribed", m.Op, "%+v", m)
				m = other.next()
				assert.Truef(t, m.Op == "caught_up" && m.Position == 0, "another tenant gets %+v", m)
				m = right.next()
				assert.Equalf(t, "subscribed", m.Op, "%+v", m)
			case "watch":
				for _, c := range []*wsClient{elsewhere, other} {
					m := c.next()
					assert.Truef(t, m.Op == "error" && m.Code == workflow.CommandNotFound, "%+v", m)
				}
				m := right.next()
				assert.Truef(t, m.Op == "status" && m.Command != nil, "%+v", m)
			case "unsubscribe":
				m := right.next()
				assert.Truef(t, m.Op == "error" && m.Code == workflow.InvalidRequest, "%+v", m)
			case "authenticate":
				for _, c := range []*wsClient{elsewhere, other, right} {
					m := c.next()
					assert.Truef(t, m.Op == "error" && m.Code == workflow.Unauthorized, "%+v", m)
				}
			}
		}
	}
}

func TestNoCredentialIsLogged(t *testing.T) {
	g := newGuarded(t)
	secrets := []string{strings.Split(g.token("acme", "read"), ".")[1]}
	for _, headers := range g.wrong() {
		g.get("/v1/instances", headers...)
		for _, h := range headers {
			if _, token, is := strings.Cut(h, " "); is {
				secrets = append(secrets, token)
			}
		}
	}
	g.get("/v1/instances", g.with("submit")...)
	log := g.log.String()
	for _, secret := range secrets {
		assert.NotContains(t, log, secret, "the log has")
	}
	for _, want := range []string{"reason=expired", "reason=grant", "actor=ann", "tenant=acme"} {
		assert.Contains(t, log, want, "the log does not say")
	}
}

// With authentication nobody names himself.
func TestACallerWithACredentialCannotNameHimself(t *testing.T) {
	g := newGuarded(t)
	for _, name := range []string{"Pawl-Tenant", "Pawl-Actor", "Pawl-Roles"} {
		g.get("/v1/me", append(g.with("read"), name, "x")...).wantProblem(t, 400, workflow.InvalidRequest)
	}
}
