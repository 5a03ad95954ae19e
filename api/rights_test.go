package api_test

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/auth/authtest"
	"github.com/pawlhq/pawl/workflow"
)

func TestNarrowGrants(t *testing.T) {
	g := newGuarded(t)
	id := "/v1/instances/" + g.instance.String()
	key := "/v1/workflows/parcel/keys/L-1"
	courier := "/v1/instances/" + g.packedBy(t, g.with("submit")...)
	for _, c := range []struct {
		grants, path string
		want         int
	}{
		{"read:parcel", id, 200},
		{"read:parcel#L-1", key + "/history", 200},
		{"read:@" + g.instance.String(), key, 200},
		{"read:courier", key, 403},
		{"read:courier", id, 404},
		{"read:parcel#L-1", courier, 404},
		{"read:parcel", "/v1/instances", 403},
		{"read:parcel", "/v1/instances?workflow=courier", 403},
		{"read:parcel", "/v1/instances?workflow=parcel", 200},
		{"read:parcel#L-1", "/v1/instances?workflow=parcel", 403},
		{"read:parcel#L-1", "/v1/instances?workflow=parcel&business_key=L-1", 200},
		{"read:parcel", "/v1/counts?workflow=parcel", 200},
		{"read:parcel", "/v1/workflows", 403},
		{"read:parcel", "/v1/workflows/parcel", 200},
		{"read:parcel", "/v1/events", 403},
		{"read:parcel", "/v1/events?instance=" + g.instance.String(), 200},
		{"read:courier", "/v1/events?instance=" + g.instance.String(), 404},
		{"read:parcel#L-1", "/v1/commands/parcel:label/k", 200},
		{"read:courier", "/v1/commands/parcel:label/k", 404},
		{"operate:parcel", "/v1/ops/stuck", 403},
		{"operate:parcel", "/v1/ops/commands?workflow=parcel", 200},
		{"operate:parcel", "/v1/ops/paused?workflow=courier", 403},
		{"operate:parcel", "/v1/ops/instances/" + g.instance.String(), 200},
		{"operate:courier", "/v1/ops/instances/" + g.instance.String(), 404},
		{"operate:parcel", "/v1/counts?workflow=parcel&all_tenants=true", 403},
	} {
		a := g.get(c.path, g.with(c.grants)...)
		assert.Equalf(t, c.want, a.status, "%s, %s: %.200s", c.grants, c.path, a.body)
	}
}

// packedBy makes a parcel without a business key.
func (g *guarded) packedBy(t *testing.T, headers ...string) string {
	t.Helper()
	a := g.post("/v1/workflows/parcel/pack", uuid.NewString(), `{"to":"Graz"}`, headers...)
	a.want(t, 201)
	return strings.TrimPrefix(a.header.Get("Location"), "/v1/instances/")
}

func TestGrantForOneTransition(t *testing.T) {
	g := newGuarded(t)
	one := g.with("submit:parcel/stamp")
	g.post("/v1/instances/"+g.instance.String()+"/stamp", "1", `{}`, one...).want(t, 200)
	g.post("/v1/workflows/parcel/keys/L-1/stamp?dry_run=true", "2", `{}`, one...).want(t, 200)
	before := g.rows()
	p := g.post("/v1/workflows/parcel/pack", "3", `{"to":"x"}`, one...).wantProblem(t, 403, workflow.Forbidden)
	assert.Contains(t, p.Detail, `"submit:parcel/pack"`)
	g.post("/v1/workflows/parcel/keys/L-1/send", "4", `{}`, one...).wantProblem(t, 403, workflow.Forbidden)
	g.post("/v1/instances/"+g.instance.String()+"/send", "5", `{}`, one...).wantProblem(t, 404, workflow.InstanceNotFound)
	g.do("DELETE", "/v1/commands/parcel:label/k", nil, one...).wantProblem(t, 404, workflow.CommandNotFound)
	if after := g.rows(); after["command"] != before["command"] || after["audit"] != before["audit"] {
		t.Errorf("what was refused was written: %v, %v", before, after)
	}
	// Each item of a bulk by itself.
	item := func(key, rest string) string { return `{"transition":"stamp","key":"` + key + `",` + rest + `}` }
	list := read[[]wire.BulkResult](t, g.post("/v1/commands", "", "["+strings.Join([]string{
		item("6", `"workflow":"parcel","business_key":"L-1"`),
		item("7", `"instance":"`+g.instance.String()+`"`),
		item("8", `"workflow":"courier","instance":"`+g.instance.String()+`"`),
		item("9", `"instance":"`+uuid.NewString()+`"`),
		`{"transition":"pack","workflow":"parcel","key":"10","payload":{"to":"x"}}`,
	}, ",")+"]", one...))
	for i, want := range []int{200, 200, 403, 404, 403} {
		assert.Equalf(t, want, list[i].Status, "item %d %s", i, list[i].Body)
	}
}

// An instance outside of the grants is answered as one that does not exist.
func TestUncoveredInstanceLooksUnknown(t *testing.T) {
	g := newGuarded(t)
	missing := uuid.NewString()
	for _, c := range [][2]string{{"GET", ""}, {"GET", "/history"}, {"GET", "/children"}, {"GET", "/transitions"}, {"GET", "/diagram"},
		{"POST", "/stamp"}} {
		for _, grants := range []string{"read:courier submit:courier", "read:@" + uuid.NewString() + " submit:@" + uuid.NewString()} {
			var told [2]string
			for i, id := range []string{g.instance.String(), missing} {
				headers := append(g.with(grants), "Idempotency-Key", "x", "Content-Type", "application/json")
				a := g.do(c[0], "/v1/instances/"+id+c[1], []byte(`{}`), headers...)
				a.wantProblem(t, 404, workflow.InstanceNotFound)
				told[i] = strings.ReplaceAll(string(a.body), id, "ID")
			}
			assert.Equalf(t, told[1], told[0], "%s %s, and of none", c[0], c[1])
		}
	}
	there := g.get("/v1/commands/parcel:label/k", g.with("read:courier")...)
	none := g.get("/v1/commands/parcel:label/no", g.with("read:courier")...)
	assert.Equalf(t, string(none.body), string(there.body), "%s, and of none %s", there.body, none.body)
}

// Acting for another actor needs a grant, and the audit row has both actors.
func TestAuditHasProofAndActors(t *testing.T) {
	g := newGuarded(t)
	path := "/v1/instances/" + g.instance.String() + "/stamp"
	proof := "jwt " + authtest.Issuer
	g.post(path, "1", `{}`, append(g.with("submit"), "Pawl-Actor", "bob")...).wantProblem(t, 403, workflow.Forbidden)
	g.post(path, "1", `{}`, append(g.with("submit act-as:parcel/pack"), "Pawl-Actor", "bob")...).wantProblem(t, 404, workflow.InstanceNotFound)
	g.get("/v1/instances", append(g.with("read act-as"), "Pawl-Actor", "bob")...).wantProblem(t, 400, workflow.InvalidRequest)
	g.post(path, "1", `{}`, append(g.with("submit act-as:parcel"), "Pawl-Actor", "bob")...).want(t, 200)
	g.post(path, "2", `{}`, append(g.with("submit"), "Pawl-Actor", "ann")...).want(t, 200) // who he is himself
	bulk := `[{"transition":"stamp","workflow":"parcel","business_key":"L-1","key":"3","actor":"eve"}]`
	for grants, want := range map[string]int{"submit": 403, "submit act-as": 200} {
		list := read[[]wire.BulkResult](t, g.post("/v1/commands", "", bulk, g.with(grants)...))
		assert.Equalf(t, want, list[0].Status, "%s: %s", grants, list[0].Body)
	}
	entries := read[wire.History](t, g.get("/v1/instances/"+g.instance.String()+"/history", g.with("read")...)).Entries
	for i, want := range [][2]string{{"ann", proof}, {"bob", proof + " by ann"}, {"ann", proof}, {"eve", proof + " by ann"}} {
		assert.Equal(t, want, [2]string{entries[i].Actor, entries[i].Proof})
	}
}

func TestMe(t *testing.T) {
	g := newGuarded(t)
	headers := g.with("read submit:parcel/stamp")
	me := read[wire.Me](t, g.get("/v1/me", headers...))
	assert.Truef(t, me.Tenant == "acme" && me.Actor == "ann" && strings.Join(me.Grants, " ") == "read submit:parcel/stamp" &&
		me.Proof.Kind == auth.JWT && me.Proof.By != "" && !me.Until.IsZero() && me.Can == nil,
		"%+v", me)
	for asked, want := range map[string]wire.MeCan{
		"read:parcel":         {Allowed: true, Why: "read"},
		"submit:parcel/stamp": {Allowed: true, Why: "submit:parcel/stamp"},
		"submit:parcel/pack":  {Why: "the grants with this right are narrower, or for something else"},
		"submit":              {Why: "the grants with this right are narrower, or for something else"},
		"operate":             {Why: "no grant gives this right"},
		"submit:@" + g.instance.String() + "/stamp": {Why: "it depends on the workflow of the instance: ask for that"},
	} {
		want.Grant = asked
		me := read[wire.Me](t, g.get("/v1/me?can="+strings.ReplaceAll(asked, "#", "%23"), headers...))
		assert.Truef(t, me.Can != nil && *me.Can == want, "%s: %+v", asked, me.Can)
	}
	g.get("/v1/me?can=everything", headers...).wantProblem(t, 400, workflow.InvalidRequest)
}

// ending is a server whose callers' credentials end a while after they connect.
func ending(t *testing.T) (*server, *atomic.Int64) {
	t.Helper()
	var lasts atomic.Int64
	lasts.Store(int64(time.Hour))
	return newServer(t, func(c *api.Config) {
		c.Identify = func(r *http.Request) (api.Caller, error) {
			caller, err := api.Loopback(r)
			caller.Until = time.Now().Add(time.Duration(lasts.Load()))
			return caller, err
		}
	}), &lasts
}

// A stream ends with its credential, and says from where to resume.
func TestStreamsEndWithTheirCredential(t *testing.T) {
	s, lasts := ending(t)
	s.someEvents()
	for lasts.Store(int64(200 * time.Millisecond)); ; lasts.Store(2 * lasts.Load()) { // until the machine is quick enough
		c := s.dial()
		events, cut := s.source("/v1/events")
		defer cut()
		if c.ws.WriteMessage(websocket.TextMessage, []byte(`{"op":"subscribe","id":"a","after":0}`)) != nil {
			continue
		}
		var last int64
		var err error
		for err == nil {
			var m wsMessage
			if m, err = c.read(); m.Op == "caught_up" {
				last = m.Position
			}
		}
		events.until(func() bool { return false })
		if last == 0 || len(events.seen) == 0 {
			continue
		}
		closed, is := errors.AsType[*websocket.CloseError](err)
		assert.True(t, is && closed.Code == 4401 && strings.Contains(closed.Text, "the credential has ended") &&
			strings.HasSuffix(closed.Text, "resume after "+strconv.FormatInt(last, 10)), err)
		assert.Truef(t, events.kind == "unauthorized" && events.lastID == "4", "%+v", events)
		break
	}
	s.waitForStreams(0)
}

// A revoked credential ends its streams: one of the log, one of a command, and a WebSocket.
func TestStreamsEndWithRevokedKey(t *testing.T) {
	g := newGuarded(t)
	booked := g.post("/v1/workflows/delivery/book", "1", `{}`, g.with("submit")...)
	g.post(booked.header.Get("Location")+"/deliver", "2", `{}`, g.with("submit")...).want(t, 202) // in flight until it is signed
	g.visit()
	made, text := g.make("acme", "read stream")
	c := g.dial(by(text)...)
	c.subscribe("a", "0", "{}")
	c.events("caught_up")
	head := strconv.FormatInt(g.head(), 10)
	events, cut := g.source("/v1/events", by(text)...)
	defer cut()
	events.until(func() bool { return events.lastID == head })
	status, cut := g.source("/v1/commands/delivery:"+strings.TrimPrefix(booked.header.Get("Location"), "/v1/instances/")+"/2", by(text)...)
	defer cut()
	status.until(func() bool { return len(status.statuses) > 0 })
	_, err := g.keys.Revoke(t.Context(), "acme", made.ID, "test")
	require.NoError(t, err)
	closed, is := errors.AsType[*websocket.CloseError](c.closed())
	assert.True(t, is && closed.Code == 4401 && strings.HasSuffix(closed.Text, "resume after "+head), closed)
	for _, stream := range []*eventSource{events, status} {
		stream.until(func() bool { return false })
		assert.Equal(t, "unauthorized", stream.kind)
	}
	assert.Equal(t, head, events.lastID)
	g.waitForStreams(0)
}

// head is the head of acme's log.
func (g *guarded) head() int64 {
	g.t.Helper()
	n, err := g.engine.Read().Head(g.t.Context(), "acme")
	require.NoError(g.t, err)
	return n
}
