package api_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/auth/authtest"
	"github.com/pawlhq/pawl/auth/jwt"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/workflow"
)

// There is one way to say who one is, and it is said once.
func TestCredentialIsGivenOnce(t *testing.T) {
	g := newWithoutEngine(t)
	token := g.token("acme", "read")
	for _, headers := range [][]string{append(by(token), by(token)...), by(token + ", Bearer " + token), by(token + " x"), by(""),
		{"Authorization", token}, {"Authorization", "Bearers " + token}, by(token + strings.Repeat("A", 17<<10))} {
		wantUnknown(t, "malformed", g.get("/v1/me", headers...))
	}
	wantUnknown(t, "none", g.get("/v1/me", "Cookie", "token="+token))
	wantUnknown(t, "none", g.get("/v1/me", "Proxy-Authorization", "Bearer "+token))
	wantUnknown(t, "none", g.get("/v1/me?access_token="+token))
	g.get("/v1/me?access_token="+token, g.with("read")...).wantProblem(t, 400, workflow.InvalidRequest)
	g.get("/v1/me", "Authorization", "bEARER  "+token).want(t, 200) // the scheme is in any case (RFC 9110, section 11.1)
}

// HEAD says of the same what GET says; no other method says anything.
func TestHeadAndOptions(t *testing.T) {
	g := newGuarded(t)
	for _, path := range []string{"/v1/instances/" + g.instance.String(), "/v1/commands/parcel:label/k",
		"/v1/workflows/parcel/keys/L-1/history"} {
		for name, c := range map[string]struct {
			headers []string
			want    int
		}{
			"nobody":         {nil, 401},
			"another tenant": {[]string{"Authorization", "Bearer " + g.token("other", auth.All().String())}, 404},
			"the right one":  {g.with("read"), 200},
		} {
			a := g.do(http.MethodHead, path, nil, c.headers...)
			assert.Truef(t, a.status == c.want && len(a.body) == 0, "HEAD %s, %s: %d %s", path, name, a.status, a.body)
		}
		there, none := g.do(http.MethodOptions, path, nil), g.do(http.MethodOptions, strings.Replace(path, "L-1", "L-9", 1), nil)
		assert.Truef(t, there.status == 405 && string(there.body) == string(none.body),
			"OPTIONS %s: %d %s, and of none %s", path, there.status, there.body, none.body)
	}
}

// A stored answer is for who may send the command now.
func TestReplayNeedsGrant(t *testing.T) {
	g := newGuarded(t)
	path := "/v1/instances/" + g.instance.String() + "/stamp"
	g.post(path, "s", `{}`, g.with("submit")...).want(t, 200)
	g.post(path, "b", `{}`, append(g.with("submit act-as"), "Pawl-Actor", "bob")...).want(t, 200)
	a := g.post(path, "s", `{}`, g.with("submit:parcel/stamp")...)
	assert.Equalf(t, "true", a.header.Get("Idempotent-Replayed"), "who may gets %d %s", a.status, a.body)
	other := []string{"Authorization", "Bearer " + g.idp.Token(map[string]any{"sub": "eve", "scope": "submit"})}
	for name, c := range map[string]struct {
		key     string
		headers []string
		status  int
		code    workflow.Code
	}{
		"for another workflow":       {"s", g.with("submit:courier"), 404, workflow.InstanceNotFound},
		"for another transition":     {"s", g.with("submit:parcel/send"), 404, workflow.InstanceNotFound},
		"for another instance":       {"s", g.with("submit:@" + uuid.NewString()), 404, workflow.InstanceNotFound},
		"to read":                    {"s", g.with("read"), 403, workflow.Forbidden},
		"as somebody, without grant": {"b", append(g.with("submit"), "Pawl-Actor", "bob"), 403, workflow.Forbidden},
		"by another actor":           {"s", other, 422, workflow.KeyReused},
		"of another tenant":          {"s", []string{"Authorization", "Bearer " + g.token("other", "submit")}, 404, workflow.InstanceNotFound},
	} {
		a := g.post(path, c.key, `{}`, c.headers...)
		a.wantProblem(t, c.status, c.code)
		item := fmt.Sprintf(`[{"transition":"stamp","instance":%q,"key":%q,"scope":"parcel:%s"}]`, g.instance, c.key, g.instance)
		bulk := g.post("/v1/commands", "", item, c.headers...)
		if bulk.status == 200 {
			one := read[[]wire.BulkResult](t, bulk)[0]
			assert.Equalf(t, c.status, one.Status, "%s, in bulk %s", name, one.Body)
		} else if bulk.status != c.status {
			t.Errorf("%s, in bulk: %d %s", name, bulk.status, bulk.body)
		}
		for _, body := range [][]byte{a.body, bulk.body} {
			assert.Truef(t, !strings.Contains(string(body), "stamps") && a.header.Get("Idempotent-Replayed") == "",
				"%s: the stored answer is told: %s", name, body)
		}
	}
}

// The name of a workflow with the id of another workflow's instance does not match.
func TestInstanceOfAnotherWorkflow(t *testing.T) {
	g := newGuarded(t)
	before := g.rows()
	for _, grant := range []string{"submit:delivery/note", "submit:delivery"} {
		item := `[{"transition":"note","workflow":"delivery","instance":"` + g.instance.String() + `","key":"n"}]`
		one := read[[]wire.BulkResult](t, g.post("/v1/commands", "", item, g.with(grant)...))[0]
		assert.Equalf(t, 404, one.Status, "%s %s", grant, one.Body)
	}
	after := g.rows()
	assert.Equal(t, before["audit"], after["audit"], "it was changed")
	for _, path := range []string{"/v1/events?workflow=delivery&instance=", "/v1/ops/stuck?workflow=delivery&instance="} {
		a := g.get(path+g.instance.String(), g.with("read:delivery operate:delivery")...)
		assert.Truef(t, a.status == 200 && !strings.Contains(string(a.body), g.instance.String()), "%s: %d %s", path, a.status, a.body)
	}
}

// A cursor says where a list goes on, not whose it is.
func TestForeignCursorFindsNothing(t *testing.T) {
	g := newGuarded(t)
	for range 3 {
		g.packedBy(t, g.with("submit")...)
	}
	for _, order := range []string{"created", "updated"} {
		path := "/v1/instances?limit=1&order=" + order
		page := read[wire.InstancePage](t, g.get(path, g.with("read")...))
		require.NotEqualf(t, "", page.Next, "%+v", page)
		a := g.get(path+"&cursor="+page.Next, "Authorization", "Bearer "+g.token("other", "read"))
		got := read[wire.InstancePage](t, a)
		assert.Truef(t, len(got.Instances) == 0 && got.Next == "", "another tenant goes on with %s", a.body)
	}
	// The log of another tenant ends elsewhere, and says so in the same words as one that was never there.
	for _, path := range []string{"/v1/events?after=1", "/v1/events?after=start"} {
		var told []string
		for _, tenant := range []string{"other", "nobody"} {
			told = append(told, string(g.get(path, "Authorization", "Bearer "+g.token(tenant, "read")).body))
		}
		assert.Truef(t, told[0] == told[1] && !strings.Contains(told[0], "parcel"), "%s: %q", path, told)
	}
}

// What a caller tries of others, in what he names himself.
func TestReservedActorsAreRefused(t *testing.T) {
	g := newGuarded(t)
	path := "/v1/instances/" + g.instance.String() + "/stamp"
	for _, actor := range []string{"pawl:timer", "inbox:post", strings.Repeat("x", 300)} {
		g.post(path, uuid.NewString(), `{}`, append(g.with("submit act-as"), "Pawl-Actor", actor)...).wantProblem(t, 400, workflow.InvalidRequest)
	}
	g.post(path, "1", `{}`, append(g.with("submit act-as"), "Pawl-Actor", "bob", "Pawl-Actor", "eve")...).wantProblem(t, 400,
		workflow.InvalidRequest)
	history := read[wire.History](t, g.get("/v1/instances/"+g.instance.String()+"/history", g.with("read")...))
	assert.Falsef(t, slices.ContainsFunc(history.Entries, func(e wire.Entry) bool { return e.Actor != "ann" }), "%+v", history)
}

// newWithoutEngine is a server that takes tokens and has no engine behind it, and so no database.
func newWithoutEngine(t *testing.T, config ...func(*api.Config)) *guarded {
	t.Helper()
	g := &guarded{server: &server{t: t, log: &lockedBuffer{}}, idp: authtest.NewProvider(t), instance: uuid.New(), key: "000000000000"}
	v, err := jwt.New(jwt.Config{Issuer: authtest.Issuer, Audience: []string{authtest.Audience}, Algorithms: []string{"ES256"},
		Keys: g.idp.Set()})
	require.NoError(t, err)
	c := api.Config{Identify: api.Bearer(v.Verify), Logger: slog.New(slog.NewTextHandler(g.log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	for _, change := range config {
		change(&c)
	}
	a, err := api.New(&engine.Engine{}, c)
	require.NoError(t, err)
	listener := httptest.NewServer(declared(t, a, nil))
	t.Cleanup(listener.Close)
	g.url = listener.URL
	return g
}

// counted are refusals by their reason.
type counted struct {
	mu sync.Mutex
	by map[string]int
}

func (c *counted) add(reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil {
		c.by = map[string]int{}
	}
	c.by[reason]++
}

// A refusal is counted by its reason and logged, and asks nothing of the engine, so of the database: neither a read nor a write.
func TestRefusalReadsNoDatabase(t *testing.T) {
	var refused counted
	g := newWithoutEngine(t, func(c *api.Config) { c.Refused = refused.add })
	want := map[string]int{}
	wrong := map[auth.Reason][]string{auth.Missing: nil, auth.Malformed: by("x.y.z"),
		auth.Expired: by(g.idp.Token(map[string]any{"exp": time.Now().Add(-time.Hour).Unix()}))}
	for _, r := range api.Routes() {
		if r.Grant == api.Public {
			continue
		}
		for reason, headers := range wrong {
			name := string(reason)
			if reason == auth.Missing {
				name = "none"
			}
			wantUnknown(t, name, g.send(g.fill(&r, headers...)))
			want[string(reason)]++
		}
		if r.Grant != api.AnyCaller {
			g.send(g.fill(&r, g.with(but(r.Grant))...)).wantProblem(t, 403, workflow.Forbidden)
			want["grant"]++
		}
		if streams := strings.Contains(r.Path, "events"); streams {
			g.send(g.fill(&r, append(g.with(but(api.Streaming)), "Accept", "text/event-stream")...)).wantProblem(t, 403, workflow.Forbidden)
			want["grant"]++
		}
	}
	refused.mu.Lock()
	defer refused.mu.Unlock()
	log := g.log.String()
	for reason, n := range want {
		assert.Equalf(t, n, refused.by[reason], "%s are counted of", reason)
		assert.Containsf(t, log, "reason="+reason, "the log does not say %s", reason)
	}
	assert.Lenf(t, refused.by, len(want), "counted, refused %v", want)
}

// Whoever sends too many commands has none of them looked at.
func TestBulkOverRateIsNotRead(t *testing.T) {
	g := newWithoutEngine(t, func(c *api.Config) { c.Limits.Rate, c.Limits.BulkItems = 0.0001, 2 })
	narrow := g.with("submit:parcel")
	g.post("/v1/commands?dry_run=true", "", `[{},{}]`, narrow...).want(t, http.StatusOK)
	item := `{"transition":"stamp","instance":"` + g.instance.String() + `","key":"k"}` // of which the workflow would be looked up
	g.post("/v1/commands", "", "["+item+"]", narrow...).wantProblem(t, 429, workflow.RateLimited)
}
