package api_test

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/uuid"
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

// otherwise is how routes answer a caller with just their grant, if not with 200; see guarded.fill for the requests.
var otherwise = map[string]int{
	"POST /v1/tickets":                           403, // of a right that the caller lacks
	"POST /v1/workflows/{workflow}/{transition}": 400, "GET /v1/stream": 400,
	"POST /v1/inbox/{consumer}": 404, "GET /metrics": 404,
	"PUT /v1/ops/begins/{workflow}": 400, "DELETE /v1/ops/begins/{workflow}": 204,
	"POST /v1/ops/instances/{id}/migrate": 400, "POST /v1/ops/workflows/{workflow}/keys/{business_key}/migrate": 400,
	"POST /v1/ops/instances/{id}/correct": 400, "POST /v1/ops/workflows/{workflow}/keys/{business_key}/correct": 400,
	"POST /v1/ops/migrations": 400, "GET /v1/ops/migrations/{migration}": 404, "POST /v1/ops/migrations/{migration}/stop": 404,
	"POST /v1/ops/commands/retry": 400, "POST /v1/ops/commands/resolve": 400, "POST /v1/ops/commands/abandon": 400,
	"PUT /v1/ops/paused/{workflow}": 204, "DELETE /v1/ops/paused/{workflow}": 204,
	"GET /v1/ops/inbox/body": 404, "GET /v1/ops/inbox/kept/message": 404, "POST /v1/ops/inbox/retry": 400, "POST /v1/ops/inbox/discard": 400,
	"GET /v1/ops/sinks/{sink}": 404, "GET /v1/ops/sinks/{sink}/dead": 404, "POST /v1/ops/sinks/{sink}/redrive": 400,
	"POST /v1/ops/sinks/{sink}/skip": 400, "POST /v1/ops/sinks/{sink}/move": 400, "POST /v1/ops/sinks/{sink}/pause": 404,
	"POST /v1/ops/sinks/{sink}/resume": 404, "POST /v1/ops/sinks/{sink}/forget": 404,
	"POST /v1/keys": 400, "DELETE /v1/keys/{api_key}": 204,
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
	k.Grants, err = auth.ParseGrants(grants)
	require.NoError(g.t, err)
	made, text, err := g.keys.Create(g.t.Context(), k)
	require.NoError(g.t, err)
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
	require.NoError(g.t, err)
	if r.Body != nil && r.Body.Media != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	for _, p := range r.Params {
		if p.In == api.InHeader && p.Required {
			request.Header.Set(p.Name, uuid.NewString())
		}
	}
	for name, values := range headerOf(headers) {
		request.Header[name] = append(request.Header[name], values...)
	}
	return request
}

var bodies = map[string]string{"/v1/commands": `[]`, "/v1/tickets": `{"grants":["read:parcel#L-1"]}`}

// wrong returns credentials that are refused, named for the reason in the answer.
func (g *guarded) wrong() map[string][]string {
	now := time.Now()
	of := func(changes map[string]any) []string { return by(g.idp.Token(changes)) }
	good := g.ticket("read", `{"grants":["read:parcel#L-1"]}`)
	dropped := g.forged(nil)
	g.drop()
	kept := g.forged(nil)
	revoked, revokedText := g.make("acme", auth.All().String())
	removed, removedText := g.make("acme", auth.All().String())
	_, err := g.keys.Revoke(g.t.Context(), "", revoked.ID, "test")
	require.NoError(g.t, err)
	g.exec("DELETE FROM pawl.api_key WHERE id = $1", removed.ID)
	return map[string][]string{
		"none":                                   nil,
		"another scheme: malformed":              {"Authorization", "Basic eDp5"},
		"malformed":                              by("x.y.z"),
		"expired":                                of(map[string]any{"exp": now.Add(-time.Hour).Unix()}),
		"not_yet_valid":                          of(map[string]any{"nbf": now.Add(time.Hour).Unix()}),
		"wrong_issuer":                           of(map[string]any{"iss": "https://evil.example"}),
		"wrong_audience":                         of(map[string]any{"aud": "someone"}),
		"claims":                                 of(map[string]any{"tenant": nil}),
		"unknown_key":                            by(authtest.NewKey(g.t, "other", jose.ES256).Sign(g.t, authtest.Claims(nil))),
		"signature":                              by(authtest.NewKey(g.t, "first", jose.ES256).Sign(g.t, authtest.Claims(nil))),
		"algorithm":                              by(authtest.NewKey(g.t, "first", jose.ES384).Sign(g.t, authtest.Claims(nil))),
		"an expired ticket: expired":             by(g.forged(map[string]any{"until": now.Add(-time.Second).UnixMilli()})),
		"a ticket of a dropped key: unknown_key": by(dropped),
		"an altered ticket: signature":           by(graft(kept, good)),
		"a ticket for everything: claims":        by(g.forged(map[string]any{"grants": auth.All().String()})),
		"a ticket of a revoked key: revoked":     by(g.forged(map[string]any{"key": revoked.ID})),
		"a mistyped key: malformed":              by(revokedText[:len(revokedText)-1] + "-"),
		"revoked":                                by(revokedText),
		"a removed key: unknown_key":             by(removedText),
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
	all := auth.All().String()
	for _, r := range api.Routes() {
		pattern := r.Method + " " + r.Path
		want := cmp.Or(otherwise[pattern], 200)
		if a := g.send(g.fill(&r)); r.Grant != api.Public {
			wantUnknown(t, "none", a)
		} else if a.status != want && a.status != 503 { // a database that is slow to answer is not ready
			t.Errorf("%s is public, and answered with %d", pattern, a.status)
		}
		if r.Grant == api.Public {
			continue
		}
		for _, headers := range [][]string{g.with(but(r.Grant)), g.withKey("acme", but(r.Grant))} {
			if a := g.send(g.fill(&r, headers...)); r.Grant != api.AnyCaller {
				p := a.wantProblem(t, 403, workflow.Forbidden)
				assert.Containsf(t, p.Detail, `this takes the grant "`+string(r.Grant), "%s does not say what is missing", pattern)
			}
		}
		other := by(g.token("other", all))
		if r.Method == http.MethodGet || strings.HasPrefix(r.Path, "/v1/keys") {
			other = g.withKey("other", all)
		}
		a := g.send(g.fill(&r, other...))
		if a.status == 401 || a.status == 403 || a.status < 300 && strings.Contains(string(a.body), g.instance.String()) &&
			!strings.Contains(r.Path, "{business_key}/{transition}") { // which makes its own
			t.Errorf("%s, for another tenant: %d %s", pattern, a.status, a.body)
		}
		right := [][]string{g.with(string(r.Grant))}
		if r.Method == http.MethodGet && r.Grant != api.AnyCaller {
			right = append(right, g.withKey("acme", string(r.Grant)))
		}
		for _, headers := range right {
			a := g.send(g.fill(&r, headers...))
			assert.Equalf(t, want, a.status, "%s, with its grant: %s", pattern, a.body)
		}
	}
}

// A credential is refused alike on a route, an event stream and a WebSocket, and is never logged.
func TestWrongCredentialsAreRefused(t *testing.T) {
	g := newGuarded(t)
	var secrets []string
	for name, headers := range g.wrong() {
		wantUnknown(t, name, g.get("/v1/instances", headers...))
		wantUnknown(t, name, g.get("/v1/events", append(headers, "Accept", "text/event-stream")...))
		wantUnknown(t, name, g.handshake(t, headers...))
		if len(headers) > 0 {
			secrets = append(secrets, strings.Split(headers[1], " ")[1])
		}
	}
	g.handshake(t, g.with(but(auth.Stream))...).wantProblem(t, 403, workflow.Forbidden)
	g.handshake(t, append(g.with("stream"), "Origin", "https://evil.example")...).wantProblem(t, 403, workflow.Forbidden)
	for _, name := range []string{"Pawl-Tenant", "Pawl-Actor", "Pawl-Roles"} { // a credential says who calls
		g.get("/v1/me", append(g.with("read"), name, "x")...).wantProblem(t, 400, workflow.InvalidRequest)
	}
	log := g.log.String()
	for _, secret := range secrets {
		assert.NotContains(t, log, secret)
	}
	for _, want := range []string{"reason=expired", "reason=grant", "actor=ann", "tenant=acme"} {
		assert.Contains(t, log, want)
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
