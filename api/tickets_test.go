package api_test

import (
	"bufio"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/uuid"
	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/auth/authtest"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// askTicket asks for a ticket as a caller of acme with grants.
func (g *guarded) askTicket(grants, body string) answer {
	g.t.Helper()
	return g.do("POST", "/v1/tickets", []byte(body), append(g.with(grants), "Content-Type", "application/json")...)
}

// ticket is one that he gets.
func (g *guarded) ticket(grants, body string) string {
	g.t.Helper()
	a := g.askTicket(grants, body)
	a.want(g.t, http.StatusCreated)
	return read[wire.Ticket](g.t, a).Ticket
}

// forged is a ticket of any claims, of a thief of the newest key.
func (g *guarded) forged(change map[string]any) string {
	g.t.Helper()
	var id string
	var secret []byte
	require.NoError(g.t, g.pool.QueryRow(g.t.Context(),
		"SELECT id::text, secret FROM pawl.ticket_key ORDER BY created_at DESC LIMIT 1").Scan(&id, &secret))
	all := map[string]any{"tenant": "acme", "actor": "ann", "grants": "read:parcel#L-1", "until": time.Now().Add(50 * time.Minute).UnixMilli()}
	maps.Copy(all, change)
	return "pawlt_" + authtest.Sign(g.t, jose.HS256, jose.JSONWebKey{Key: secret, KeyID: id}, all)
}

// drop removes all keys, and waits until the server has noticed and has another one.
func (g *guarded) drop() {
	g.t.Helper()
	old := g.forged(nil)
	g.exec("DELETE FROM pawl.ticket_key")
	await.Eventually(g.t, "the key is gone", func() bool { return g.get("/v1/me", by(old)...).status == 401 })
	g.ticket("read", `{"grants":["read:parcel"]}`)
}

// graft is a ticket with the claims of another one.
func graft(text, other string) string {
	a, b := strings.Split(text, "."), strings.Split(other, ".")
	return a[0] + "." + b[1] + "." + a[2]
}

func by(credential string) []string { return []string{"Authorization", "Bearer " + credential} }

const ofOneParcel = `{"grants":["read:parcel#L-1","stream:parcel#L-1","submit:parcel#L-1/stamp"]}`

// lastEntry returns the newest audit row of the instance.
func (g *guarded) lastEntry(headers ...string) wire.Entry {
	g.t.Helper()
	entries := read[wire.History](g.t, g.get("/v1/instances/"+g.instance.String()+"/history", headers...)).Entries
	return entries[len(entries)-1]
}

func TestTicketGrantsNoMore(t *testing.T) {
	g := newGuarded(t)
	before := g.rows()
	a := g.askTicket("read stream submit", strings.Replace(ofOneParcel, "{", `{"roles":[],"seconds":60,`, 1))
	made := read[wire.Ticket](t, a)
	left := time.Until(made.Until)
	assert.Truef(t, left <= time.Minute && left > 0 && a.header.Get("Cache-Control") == "no-store" && a.header.Get("Set-Cookie") == "",
		"%s, %v", left, a.header)
	before["ticket_key"] = 1
	assert.Equal(t, before, g.rows(), "rows")
	it := by(made.Ticket)
	id := "/v1/instances/" + g.instance.String()
	other := "/v1/instances/" + g.packedBy(t, g.with("submit")...)
	for path, want := range map[string]int{
		id: 200, id + "/history": 200, "/v1/workflows/parcel/keys/L-1": 200, "/v1/events?workflow=parcel&business_key=L-1": 200,
		other: 404, "/v1/instances?workflow=parcel": 403, "/v1/events": 403, "/v1/workflows/parcel": 403, "/v1/ops/keys": 403,
	} {
		assert.Equal(t, want, g.get(path, it...).status, path)
	}
	g.post(id+"/stamp", "t1", `{}`, it...).want(t, 200)
	g.post(id+"/send", "t3", `{}`, it...).wantProblem(t, 404, workflow.InstanceNotFound)
	g.post("/v1/workflows/parcel/pack", "t5", `{"to":"x"}`, it...).wantProblem(t, 403, workflow.Forbidden)
	g.post(id+"/stamp", "t6", `{}`, append(it, "Pawl-Actor", "bob")...).wantProblem(t, 403, workflow.Forbidden)
	g.do("POST", "/v1/tickets", []byte(ofOneParcel), append(it, "Content-Type", "application/json")...).wantProblem(t, 403, workflow.Forbidden)
	me := read[wire.Me](t, g.get("/v1/me?can=submit:parcel%23L-1/stamp", it...))
	assert.Truef(t, me.Proof == (wire.MeProof{Kind: auth.Ticket, By: "jwt " + authtest.Issuer}) && me.Actor == "ann" &&
		me.Until.Sub(made.Until).Abs() <= time.Second && len(me.Grants) == 3 && me.Can != nil && me.Can.Allowed, "%+v", me)
	last := g.lastEntry(it...)
	assert.Equal(t, [2]string{"ann", "ticket jwt " + authtest.Issuer}, [2]string{last.Actor, last.Proof})
	assert.NotContains(t, g.log.String(), strings.Split(made.Ticket, ".")[2])
}

// No route does more for a ticket of another workflow than to say who has it.
func TestTicket_OtherPurpose(t *testing.T) {
	g := newGuarded(t)
	it := by(g.ticket("read stream submit", `{"grants":["read:courier","stream:courier","submit:courier"]}`))
	other := by(g.ticket("read stream submit", `{"grants":["read:parcel#L-2","stream:parcel#L-2","submit:parcel#L-2"]}`))
	about := map[string]int{"GET /v1/me": 200, "POST /v1/commands": 200, "GET /v1/stream": 400} // nothing in particular
	for _, r := range api.Routes() {
		if r.Grant == api.Public {
			continue
		}
		for name, headers := range map[string][]string{"another workflow": it, "another instance": other} {
			a := g.send(g.fill(&r, headers...))
			if want := about[r.Method+" "+r.Path]; a.status != want && (want != 0 || a.status != 403 && a.status != 404) {
				t.Errorf("%s %s, for %s: %d %.200s", r.Method, r.Path, name, a.status, a.body)
			}
		}
	}
}

func TestTicketNeedsItsGrants(t *testing.T) {
	g := newGuarded(t)
	id := g.instance.String()
	for _, c := range []struct {
		grants, body string
		status       int
		code         workflow.Code
		says         string
	}{
		{"read:parcel", `{"grants":["read:parcel#L-1","read:@` + id + `"]}`, 201, "", ""},
		{"read:parcel#L-1", `{"grants":["read:@` + id + `"]}`, 201, "", ""},
		{"read:courier", `{"grants":["read:@` + id + `"]}`, 404, workflow.InstanceNotFound, ""},
		{"read:parcel", `{"grants":["read:@` + uuid.NewString() + `"]}`, 404, workflow.InstanceNotFound, ""},
		{"read:parcel#L-1", `{"grants":["read:parcel"]}`, 403, workflow.Forbidden, `"read:parcel"`},
		{"read", `{"grants":["read:parcel","submit:parcel/stamp"]}`, 403, workflow.Forbidden, `"submit:parcel/stamp"`},
		{"submit:parcel/stamp", `{"grants":["submit:parcel#L-1/stamp"]}`, 201, "", ""},
		{"operate:all", `{"grants":["read:parcel"]}`, 403, workflow.Forbidden, ""},
		{"submit", `{"grants":["submit:parcel/stamp"],"actor":"bob"}`, 403, workflow.Forbidden, `"act-as"`},
		{"submit act-as:courier", `{"grants":["submit:parcel/stamp"],"actor":"bob"}`, 403, workflow.Forbidden, `"act-as:parcel/stamp"`},
		{"submit act-as:parcel/stamp", `{"grants":["submit:parcel/stamp"],"actor":"bob"}`, 201, "", ""},
		{"submit", `{"grants":["submit:parcel/stamp"],"actor":"ann"}`, 201, "", ""},
		{"read", `{"grants":["read:parcel"],"roles":["*"]}`, 403, workflow.Forbidden, "a role that the caller has not"},
		{"read", ``, 400, workflow.InvalidRequest, "there is no grant"},
		{"read", `{"grants":["read:parcel","write"]}`, 400, workflow.InvalidRequest, "/grants/1"},
		{"read", `{"grants":["read"]}`, 400, workflow.InvalidRequest, "is for everything"},
		{"read", `{"grants":["read:parcel"],"seconds":0}`, 400, workflow.InvalidRequest, "/seconds"},
		{"read", `{"grants":["read:parcel"],"seconds":3601}`, 400, workflow.InvalidRequest, "/seconds"},
		{"read", `{"grants":["read:parcel"],"actor":"pawl:timer"}`, 400, workflow.InvalidRequest, "which is reserved"},
		{"read", `{"grants":["` + strings.Repeat("x", 70_000) + `"]}`, 413, workflow.TooLarge, ""},
	} {
		a := g.askTicket(c.grants, c.body)
		if c.status == 201 {
			assert.Equalf(t, 201, a.status, "%s, %s %s", c.grants, c.body, a.body)
			continue
		}
		a.wantProblem(t, c.status, c.code)
		assert.Containsf(t, strings.ReplaceAll(string(a.body), `\"`, `"`), c.says, "%s, %.100s: %s", c.grants, c.body, a.body)
	}
	// For another actor the ticket names its issuer, and it expires with the issuer's credential.
	soon := time.Now().Add(2 * time.Minute)
	asker := g.idp.Token(map[string]any{"scope": "read submit act-as", "exp": soon.Unix(), "sub": "gateway", "roles": "clerk guard"})
	a := g.do("POST", "/v1/tickets", []byte(`{"grants":["read:parcel#L-1","submit:parcel#L-1/stamp"],"actor":"bob","roles":["guard"],`+
		`"seconds":3600}`),
		append(by(asker), "Content-Type", "application/json")...)
	made := read[wire.Ticket](t, a)
	if made.Until.After(soon.Add(31 * time.Second)) { // with the leeway
		t.Errorf("it ends %s after its asker", made.Until.Sub(soon))
	}
	g.post("/v1/instances/"+id+"/stamp", "s", `{}`, by(made.Ticket)...).want(t, 200)
	last := g.lastEntry(by(made.Ticket)...)
	assert.Equal(t, [2]string{"bob", "ticket jwt " + authtest.Issuer + " by gateway"}, [2]string{last.Actor, last.Proof})
	me := read[wire.Me](t, g.get("/v1/me", by(made.Ticket)...))
	assert.True(t, slices.Equal(me.Roles, []string{"guard"}), me.Roles)
}

// A cookie is for the event streams of pages of this host, and for nothing else.
func TestTicketCookieOnlyForEventStreams(t *testing.T) {
	g := newGuarded(t)
	a := g.askTicket("read stream submit", strings.Replace(ofOneParcel, "{", `{"cookie":true,"seconds":600,`, 1))
	a.want(t, 201)
	cookie := (&http.Response{Header: a.header}).Cookies()[0]
	if cookie.Name != "pawl_ticket" || cookie.Value != read[wire.Ticket](t, a).Ticket || !cookie.HttpOnly ||
		cookie.SameSite != http.SameSiteStrictMode ||
		cookie.Path != "/v1/" || cookie.Secure || cookie.MaxAge < 1 || cookie.MaxAge > 600 || cookie.Domain != "" {
		t.Errorf("%+v", cookie)
	}
	const events = "/v1/events?workflow=parcel&business_key=L-1"
	kept := []string{"Cookie", "other=1; pawl_ticket=" + cookie.Value, "Accept", "text/event-stream"}
	for site, want := range map[string]int{"same-origin": 200, "same-site": 401, "cross-site": 401, "none": 401, "": 401} {
		headers := kept
		if site != "" {
			headers = append(headers[:len(headers):len(headers)], "Sec-Fetch-Site", site)
		}
		for _, path := range []string{events, "/v1/commands/parcel:label/k"} {
			assert.Equalf(t, want, g.streamed(path, headers...), "%s, %q", path, site)
		}
	}
	same := append(kept, "Sec-Fetch-Site", "same-origin")
	assert.Equal(t, 403, g.streamed("/v1/events", same...), "everything")
	same[3] = "application/json"
	for what, a := range map[string]answer{
		"JSON":      g.get(events, same...),
		"a caller":  g.get("/v1/me", same...),
		"a command": g.post("/v1/instances/"+g.instance.String()+"/stamp", "c", `{}`, same...),
		"a socket":  g.get("/v1/stream", append(same, handshake...)...),
	} {
		assert.Equal(t, 401, a.status, what)
	}
	same[3] = "text/event-stream"
	assert.Equal(t, 401, g.do("HEAD", events, nil, same...).status)
	for _, bad := range []string{"pawl_ticket=x", "pawl_ticket=" + g.token("acme", "read stream"), kept[1] + "; pawl_ticket=" + cookie.Value} {
		same[1] = bad
		assert.Equal(t, 401, g.get(events, same...).status, bad)
	}
	// Who sends both is known by the header.
	same[1] = "pawl_ticket=x"
	assert.Equal(t, 200, g.streamed(events, append(same, g.with("read stream")...)...), "with a header")
	assert.NotContains(t, g.log.String(), "pawlt_", "the log has a ticket")
}

// streamed asks for an event stream, and hangs up.
func (g *guarded) streamed(path string, headers ...string) int {
	g.t.Helper()
	response, err := http.DefaultClient.Do(g.request(g.t.Context(), http.MethodGet, path, nil, headers...))
	require.NoError(g.t, err)
	defer response.Body.Close()
	assert.Falsef(g.t, response.StatusCode == 200 && response.Header.Get("Content-Type") != "text/event-stream", "%s is answered as %s", path, response.Header.Get("Content-Type"))
	if response.StatusCode == 200 {
		if line, err := bufio.NewReader(response.Body).ReadString('\n'); err != nil || line != "retry: 1000\n" {
			g.t.Errorf("%s: %q, %v", path, line, err)
		}
	}
	return response.StatusCode
}

// dialAs opens a WebSocket as a browser does, whose pages send no header.
func (g *guarded) dialAs(offers ...string) (*wsClient, *http.Response, error) {
	ws, response, err := g.upgrade(&websocket.Dialer{Subprotocols: offers})
	if err != nil {
		return nil, response, err
	}
	g.t.Cleanup(func() { _ = ws.Close() })
	return &wsClient{t: g.t, ws: ws}, response, nil
}

func TestCredentialInSubprotocol(t *testing.T) {
	g := newGuarded(t)
	text := g.ticket("read stream submit", ofOneParcel)
	for _, credential := range []string{text, g.token("acme", "stream")} {
		c, response, err := g.dialAs("pawl.v1", "pawl.ticket."+credential)
		require.NoError(t, err, response)
		got := response.Header.Values("Sec-WebSocket-Protocol")
		assert.Truef(t, slices.Equal(got, []string{"pawl.v1"}), "the server answers %q", got)
		c.subscribe("a", "0", `{"workflow":"parcel","business_key":"L-1"}`)
		ids, _ := c.events("caught_up")
		assert.NotEqual(t, 0, len(ids), "there are no events")
		if credential == text {
			c.send(`{"op":"subscribe","id":"b","after":0,"filter":{"workflow":"parcel"}}`)
			m := c.next()
			assert.Truef(t, m.Op == "error" && m.Code == workflow.Forbidden, "%+v", m)
		}
	}
	for name, offers := range map[string][]string{
		"none":             {"pawl.v1"},
		"nothing in it":    {"pawl.v1", "pawl.ticket."},
		"two":              {"pawl.v1", "pawl.ticket." + text, "pawl.ticket." + text},
		"altered":          {"pawl.v1", "pawl.ticket." + text[:len(text)-1]},
		"of a ticket that": {"pawl.v1", "pawl.ticket.x.y.z"},
	} {
		_, response, err := g.dialAs(offers...)
		assert.Truef(t, err != nil && response.StatusCode == 401, "%s: %v", name, response)
	}
	_, response, err := g.dialAs("pawl.ticket." + text)
	assert.Falsef(t, err != nil && response.StatusCode != 400, "without pawl.v1: %v", response)
	both := append(by(text), "Sec-WebSocket-Protocol", "pawl.v1, pawl.ticket."+text)
	g.get("/v1/stream", both...).wantProblem(t, 401, workflow.Unauthorized)
	log := g.log.String()
	assert.True(t, !strings.Contains(log, "pawlt_") && !strings.Contains(log, strings.Split(text, ".")[2]), "the log has a ticket")
}

// renewed is an answer to authenticate.
func renewed(c *wsClient, credential string) wsMessage {
	c.t.Helper()
	c.send(`{"op":"authenticate","id":"n","credential":"` + credential + `"}`)
	for {
		if m, err := c.read(); err != nil || m.ID == "n" {
			if err != nil {
				m.Detail = err.Error()
			}
			return m
		}
	}
}

func TestStreamContinuesWithNewTicket(t *testing.T) {
	g := newGuarded(t)
	short := func(seconds int) string {
		return g.ticket("read stream submit", strings.Replace(ofOneParcel, "{", `{"seconds":`+strconv.Itoa(seconds)+`,`, 1))
	}
	for seconds := 2; ; seconds *= 2 { // until the machine is quick enough
		ends := time.Now().Add(time.Duration(seconds) * time.Second)
		first, second := short(seconds), g.ticket("read stream submit", ofOneParcel)
		c, _, err := g.dialAs("pawl.v1", "pawl.ticket."+first)
		if err != nil {
			continue
		}
		c.subscribe("a", "0", `{"workflow":"parcel","business_key":"L-1"}`)
		c.events("caught_up")
		m := renewed(c, second)
		if m.Op != "authenticated" {
			continue
		}
		left := time.Until(m.Until)
		assert.Truef(t, left >= time.Minute && left <= 5*time.Minute, "it lasts for %s", left)
		await.Pass("the first ticket ends", time.Until(ends)+100*time.Millisecond)
		g.post("/v1/instances/"+g.instance.String()+"/stamp", uuid.NewString(), `{}`, by(second)...).want(t, 200)
		assert.Len(t, c.take(1), 1)
		return
	}
}

func TestWebSocketCredential_SameActor(t *testing.T) {
	g := newGuarded(t)
	c := g.dial(g.with("stream")...)
	c.subscribe("all", "0", `{}`)
	c.events("caught_up")
	c.subscribe("one", "0", `{"workflow":"parcel","business_key":"L-1"}`)
	c.events("caught_up")
	c.send(`{"op":"watch","id":"w","scope":"parcel:label","key":"k"}`)
	m := c.next()
	require.Truef(t, m.Final, "%+v", m)
	for name, bad := range map[string]struct {
		credential string
		code       workflow.Code
	}{
		"another actor's":  {g.idp.Token(map[string]any{"sub": "bob", "scope": "stream"}), workflow.Forbidden},
		"another tenant's": {g.token("other", "stream"), workflow.Forbidden},
		"without a right":  {g.token("acme", "read"), workflow.Forbidden},
		"expired":          {g.idp.Token(map[string]any{"scope": "stream", "exp": time.Now().Add(-time.Hour).Unix()}), workflow.Unauthorized},
		"none":             {"x", workflow.Unauthorized},
	} {
		m := renewed(c, bad.credential)
		assert.Truef(t, m.Op == "error" && m.Code == bad.code, "%s: %+v", name, m)
	}
	// It goes on as before.
	g.post("/v1/instances/"+g.instance.String()+"/stamp", "1", `{}`, g.with("submit")...).want(t, 200)
	if ids := c.take(4); len(ids) != 4 { // two events to each
		t.Errorf("%v", ids)
	}
	// What the next one does not cover ends, and says why.
	narrow := g.ticket("stream", `{"grants":["stream:parcel#L-1"]}`)
	m = renewed(c, narrow)
	require.Truef(t, m.Op == "authenticated" && !m.Until.IsZero(), "%+v", m)
	if m := c.next(); m.Op != "error" || m.ID != "all" || m.Code != workflow.Forbidden || !strings.Contains(m.Detail, `"stream"`) {
		t.Errorf("%+v", m)
	}
	m = c.next()
	assert.Truef(t, m.Op == "unsubscribed" && m.ID == "all", "%+v", m)
	c.send(`{"op":"subscribe","id":"all","after":0}`)
	m = c.next()
	assert.Truef(t, m.Op == "error" && m.Code == workflow.Forbidden, "%+v", m)
	g.post("/v1/instances/"+g.instance.String()+"/stamp", "2", `{}`, g.with("submit")...).want(t, 200)
	m = c.next()
	assert.Truef(t, m.Op == "event" && m.ID == "one", "%+v", m)
	// And back again.
	m = renewed(c, g.token("acme", "stream"))
	assert.Equalf(t, "authenticated", m.Op, "%+v", m)
	c.subscribe("all", "0", `{}`)
	c.events("caught_up")
	assert.NotContains(t, g.log.String(), "pawlt_", "the log has a ticket")
}

// When the signing key is dropped, streams end as if their tickets had.
func TestStreamEndsWithTicketKey(t *testing.T) {
	g := newGuarded(t)
	c, _, err := g.dialAs("pawl.v1", "pawl.ticket."+g.ticket("stream", `{"grants":["stream:parcel#L-1"]}`))
	require.NoError(t, err)
	c.subscribe("a", "0", `{"workflow":"parcel","business_key":"L-1"}`)
	_, caught := c.events("caught_up")
	g.drop()
	closed, is := errors.AsType[*websocket.CloseError](c.closed())
	want := "resume after " + strconv.FormatInt(caught.Position, 10)
	assert.Truef(t, is && closed.Code == 4401 && strings.HasSuffix(closed.Text, want), "%v, not %q", closed, want)
	g.waitForStreams(0)
}

// Without authentication a ticket is still checked as a ticket, and does not make its holder a local actor.
func TestTicket_NoAuthentication(t *testing.T) {
	g := &guarded{server: newServer(t)}
	a := g.post("/v1/workflows/parcel/label", "k", `{"to":"Graz","label":"L-1"}`, "Pawl-Actor", "ann")
	g.instance = read[transitions.Result](t, a).Instance
	ask := func(headers ...string) answer {
		return g.do("POST", "/v1/tickets", []byte(ofOneParcel), append(headers, "Content-Type", "application/json")...)
	}
	text := read[wire.Ticket](t, ask("Pawl-Actor", "ann")).Ticket
	const one = "/v1/workflows/parcel/keys/L-1"
	g.get(one, by(text)...).want(t, 200)
	g.get("/v1/instances", by(text)...).wantProblem(t, 403, workflow.Forbidden)
	g.get("/v1/instances", by("whatever")...).want(t, 200) // another credential is not looked at
	for _, bad := range [][]string{by(text[:len(text)-1]), by("pawlt_"), by(" " + text + " x"), append(by("x"), by(text)...)} {
		g.get(one, bad...).wantProblem(t, 401, workflow.Unauthorized)
	}
	g.get(one, append(by(text), "Pawl-Tenant", "x")...).wantProblem(t, 400, workflow.InvalidRequest)
	g.post(one+"/stamp", "1", `{}`, append(by(text), "Origin", "https://evil.example")...).wantProblem(t, 403, workflow.Forbidden)
	ask("Origin", "https://evil.example").wantProblem(t, 403, workflow.Forbidden)
	g.post(one+"/stamp", "2", `{}`, by(text)...).want(t, 200)
	last := g.lastEntry(by(text)...)
	assert.Equal(t, [2]string{"ann", "ticket loopback"}, [2]string{last.Actor, last.Proof})
	cookie := []string{"Cookie", "pawl_ticket=" + text, "Sec-Fetch-Site", "same-origin", "Accept", "text/event-stream"}
	assert.Equal(t, 403, g.streamed("/v1/events", cookie...))
	c, _, err := g.dialAs("pawl.v1", "pawl.ticket."+text)
	require.NoError(t, err)
	assert.Equal(t, workflow.Unauthorized, renewed(c, "whatever").Code, "a caller with a ticket becomes one without")
	assert.Equal(t, "authenticated", renewed(c, read[wire.Ticket](t, ask("Pawl-Actor", "ann")).Ticket).Op)
}

// A ticket that an API key has asked for is good only as long as the key is.
func TestTicketEndsWithItsAPIKey(t *testing.T) {
	g := newGuarded(t)
	key, text := g.make("acme", "read stream")
	a := g.do("POST", "/v1/tickets", []byte(`{"grants":["read:parcel#L-1","stream:parcel#L-1"]}`),
		append(by(text), "Content-Type", "application/json")...)
	made := read[wire.Ticket](t, a).Ticket
	me := read[wire.Me](t, g.get("/v1/me", by(made)...))
	assert.Truef(t, me.Proof.By == "key "+key.ID && me.Actor == "ann", "%+v", me)
	c, _, err := g.dialAs("pawl.v1", "pawl.ticket."+made)
	require.NoError(t, err)
	c.subscribe("a", "0", `{"workflow":"parcel","business_key":"L-1"}`)
	c.events("caught_up")
	_, err = g.keys.Revoke(t.Context(), "acme", key.ID, "test")
	require.NoError(t, err)
	if closed, is := errors.AsType[*websocket.CloseError](c.closed()); !is || closed.Code != 4401 {
		t.Errorf("%v", closed)
	}
	g.get("/v1/me", by(made)...).wantProblem(t, 401, workflow.Unauthorized)
}
