package api_test

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/inbox/signature"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/outbox/relay"
	"github.com/pawlhq/pawl/outbox/sink/webhook"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Job is the data of a workflow with an attribute, a business key and an event of its own.
type Job struct {
	Team string `json:"team,omitempty"`
}

type Open struct {
	Number string `json:"number" validate:"required"`
	Team   string `json:"team"`
}

func jobs() workflow.Source {
	return workflow.Define("job", 1,
		workflow.Start("open", "todo", func(_ *workflow.Call, d *Job, p Open) error {
			d.Team = p.Team
			return nil
		}).BusinessKey(func(p Open) string { return p.Number }),
		workflow.On("move", workflow.From("todo"), workflow.Stay, func(c *workflow.Call, d *Job, p Job) error {
			d.Team = p.Team
			c.Because("it is\nelsewhere")
			c.Emit("job.moved", p)
			return nil
		}),
		workflow.On("finish", workflow.From("todo"), "done", func(*workflow.Call, *Job, workflow.None) error { return nil }),
	).Final("done").Attr("team", func(d Job) string { return d.Team })
}

// receiver is a webhook's endpoint, which keeps what it gets by the event's id.
type receiver struct {
	mu  sync.Mutex
	got map[string]string
}

func (r *receiver) ServeHTTP(_ http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return
	}
	var e cloudEvent
	if json.Unmarshal(body, &e) != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got[e.ID] = string(body)
}

func (r *receiver) has(all []jsontext.Value) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, text := range all {
		var e cloudEvent
		if json.Unmarshal(text, &e) != nil || r.got[e.ID] != string(text) {
			return false
		}
	}
	return true
}

// hook is a sink that calls a webhook.
func hook(t *testing.T, name string, wants *transitions.EventFilter) (relay.Sink, *receiver) {
	t.Helper()
	r := &receiver{got: map[string]string{}}
	endpoint := httptest.NewServer(r)
	t.Cleanup(endpoint.Close)
	to, err := webhook.New(webhook.Config{URL: endpoint.URL, Secrets: []signature.Secret{signature.NewSecret()},
		PlainHTTP: true, Private: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	require.NoError(t, err)
	s := relay.Sink{Name: name, To: to}
	if wants != nil {
		s.Filter = *wants
	}
	return s, r
}

// told is what events of each type tell, without what is as it was before.
type told map[string]map[string]any

func toldBy(t testing.TB, all []jsontext.Value) told {
	t.Helper()
	out := told{}
	for _, text := range all {
		var e map[string]any
		require.NoError(t, json.Unmarshal(text, &e))
		out[e["type"].(string)] = e
	}
	return out
}

// allEvents reads the log's first thousand events.
func (s *server) allEvents(query string) []jsontext.Value {
	s.t.Helper()
	a := s.get("/v1/events?limit=1000" + query)
	a.want(s.t, 200)
	return read[wire.Events](s.t, a).Events
}

// inAnHour is a time that has not come when a command of now arrives.
func inAnHour() string { return time.Now().Add(time.Hour).UTC().Format(time.RFC3339Nano) }

// comes lets the time come of the command that is scheduled with a key.
func (s *server) comes(key string) {
	s.t.Helper()
	s.exec("UPDATE pawl.command SET run_at = now() WHERE key = $1 AND phase = 'scheduled'", key)
}

// Every reader of the log gets the same text: REST, a WebSocket, server-sent events, a webhook and Go.
func TestEventsAreTheSameForAllReaders(t *testing.T) {
	sink, got := hook(t, "crm", nil)
	s := newServerOf(t, []workflow.Source{jobs()}, []relay.Sink{sink})
	a := s.post("/v1/workflows/job/open", "o-1", `{"number":"J-1","team":"red"}`, "Pawl-Actor", "ann")
	id := read[transitions.Result](t, a).Instance.String()
	s.post("/v1/instances/"+id+"/move", "m-1", `{"team":"blue"}`, "Pawl-Actor", "bob", "Idempotency-Scope", "moves").want(t, 200)
	s.post("/v1/ops/instances/"+id+"/pause", "p-1", `{"reason":"a holiday"}`, "Pawl-Actor", "olga").want(t, 200)
	all := s.allEvents("")
	seen := toldBy(t, all)
	for kind, want := range map[string]map[string]any{
		"job.open":        {"cause": "caller", "actor": "ann", "scope": "job:open", "key": "o-1", "state": "todo", "from": nil, "reason": nil},
		"job.move":        {"cause": "caller", "actor": "bob", "scope": "moves", "key": "m-1", "from": "todo", "reason": "it is elsewhere"},
		"job.moved":       {"cause": "caller", "actor": "bob", "scope": "moves", "key": "m-1", "from": "todo", "reason": "it is elsewhere"},
		"job.pawl.paused": {"cause": "operator", "actor": "olga", "scope": "ops:" + id, "key": "p-1", "reason": "a holiday", "from": "todo"},
	} {
		maps.Copy(want, map[string]any{"instance": id, "subject": "J-1", "businesskey": "J-1", "workflow": "job", "causedby": nil,
			"datacontenttype": "application/json", "redacted": nil})
		for name, value := range want {
			assert.Equalf(t, value, seen[kind][name], "%s: %s", kind, name)
		}
	}
	for _, e := range read[wire.History](t, s.get("/v1/instances/"+id+"/history")).Entries[:2] {
		assert.Equal(t, seen["job."+e.Transition]["cause"], string(e.Cause), e.Transition)
	}
	await.Eventually(t, "the webhook has every event", func() bool { return got.has(all) })
	c := s.dial()
	c.subscribe("a", `"start"`, `{}`)
	stream, cut := s.source("/v1/events?after=start")
	defer cut()
	stream.until(func() bool { return len(stream.raw) == len(all) })
	for n, want := range all {
		assert.Equal(t, string(want), string(c.next().Event), "over WebSocket")
		assert.Equal(t, string(want), stream.raw[n], "as server-sent events")
	}
	for _, e := range s.followed(len(all)) {
		text := seen[e.Type]
		assert.Equal(t, []any{text["id"], text["actor"], text["key"], text["subject"]}, []any{e.ID(), e.Actor, e.Key, e.Subject()})
	}
}

// followed are the first n events of the log, as they are read in Go.
func (s *server) followed(n int) (all []transitions.Logged) {
	s.t.Helper()
	f := s.engine.Read().Follow(transitions.DefaultTenant, 0)
	defer f.Close()
	for len(all) < n {
		b, err := f.Next(s.t.Context())
		require.NoError(s.t, err)
		all = append(all, b.Events...)
	}
	return all[:n]
}

func TestEvents_Filters(t *testing.T) {
	blue, got := hook(t, "blue", &transitions.EventFilter{Workflow: "job", Attributes: map[string]string{"team": "blue"}})
	s := newServerOf(t, []workflow.Source{jobs()}, []relay.Sink{blue})
	for _, of := range []struct{ number, team string }{{"J-1", "red"}, {"J-2", "blue"}, {"J/3 é", ""}} {
		a := s.post("/v1/workflows/job/open", of.number, `{"number":"`+of.number+`","team":"`+of.team+`"}`)
		s.post(a.header.Get("Location")+"/move", "m", `{"team":"blue"}`).want(t, 200)
	}
	s.packed("200")
	for query, tt := range map[string]struct{ filter, want string }{
		"workflow=job&business_key=J-1":          {`{"workflow":"job","business_key":"J-1"}`, "J-1:open J-1:move J-1:moved"},
		"workflow=job&business_key=J-9":          {`{"workflow":"job","business_key":"J-9"}`, ""},
		"workflow=job&attr.team=red":             {`{"workflow":"job","attributes":{"team":"red"}}`, "J-1:open"},
		"attr.team=blue&type=job.moved":          {`{"attributes":{"team":"blue"},"types":["job.moved"]}`, "J-1:moved J-2:moved J/3 é:moved"},
		"attr.heavy=yes":                         {`{"attributes":{"heavy":"yes"}}`, "pack"},
		"workflow=job&business_key=J/3%20%C3%A9": {`{"workflow":"job","business_key":"J/3 é"}`, "J/3 é:open J/3 é:move J/3 é:moved"},
	} {
		all := s.allEvents("&" + query)
		var names []string
		for _, text := range all {
			for kind, e := range toldBy(t, []jsontext.Value{text}) {
				key, _ := e["businesskey"].(string)
				_, name, _ := strings.Cut(kind, ".")
				names = append(names, strings.TrimPrefix(key+":"+name, ":"))
			}
		}
		assert.Equal(t, tt.want, strings.Join(names, " "), query)
		c := s.dial()
		c.subscribe("a", `"start"`, tt.filter)
		stream, cut := s.source("/v1/events?after=start&" + query)
		stream.until(func() bool { return len(stream.raw) == len(all) })
		cut()
		for n, want := range all {
			assert.Equalf(t, string(want), string(c.next().Event), "%s over WebSocket", tt.filter)
			assert.Equalf(t, string(want), stream.raw[n], "%s as server-sent events", query)
		}
		assert.Equal(t, "caught_up", c.next().Op, tt.filter)
	}
	want := s.allEvents("&workflow=job&attr.team=blue")
	await.Eventually(t, "the webhook has the blue team's events", func() bool { return got.has(want) })
	got.mu.Lock()
	defer got.mu.Unlock()
	assert.Len(t, got.got, len(want))
}

// An empty value of a filter is no filter, in queries and subscriptions; only for an attribute it is a value.
func TestEmptyFilterIsAbsent(t *testing.T) {
	s := newServer(t)
	s.packed("1")
	events := s.get("/v1/events")
	got := s.get("/v1/events?workflow=&instance=&business_key=&type=&state=&after=&limit=")
	assert.Truef(t, got.status == 200 && string(got.body) == string(events.body), "events: %d %s", got.status, got.body)
	assert.Empty(t, read[wire.Events](t, s.get("/v1/events?workflow=parcel&attr.to=")).Events, "to nobody")
	list := s.get("/v1/instances")
	for path, want := range map[string]string{
		"/v1/instances?workflow=&definition=&state=&open=&business_key=&created_after=" +
			"&created_before=&updated_after=&updated_before=&order=&limit=&cursor=": string(list.body),
		"/v1/ops/stuck?workflow=&business_key=&instance=&limit=&cursor=":         string(s.get("/v1/ops/stuck").body),
		"/v1/ops/commands?status=&workflow=&limit=&cursor=":                      string(s.get("/v1/ops/commands").body),
		"/v1/ops/paused?workflow=&limit=&cursor=":                                string(s.get("/v1/ops/paused").body),
		"/v1/ops/inbox?consumer=&status=&workflow=&business_key=&limit=&cursor=": string(s.get("/v1/ops/inbox").body),
	} {
		got := s.get(path)
		assert.Truef(t, got.status == 200 && string(got.body) == want, "%s: %d %s, want %s", path, got.status, got.body, want)
	}
	s.get("/v1/counts?workflow=&definition=&state=&open=").want(t, 200)
	c := s.dial()
	c.subscribe("a", `"start"`, `{"workflow":"","instance":"","business_key":"","types":[""],"states":[""]}`)
	m := c.next()
	assert.Truef(t, m.Op == "event" && m.ID == "a", "a subscription: %+v", m)
	c.send(`{"op":"subscribe","id":"b","after":"start","filter":{"types":["","parcel.pack"]}}`)
	assert.True(t, websocket.IsCloseError(c.closed(), 4400), "an empty type among others is taken")
	s.post("/v1/workflows/parcel/pack?dry_run=", "2", `{"to":"Wien"}`).wantProblem(t, 400, workflow.InvalidRequest) // no filter
}

func TestEvents_RefusedFilters(t *testing.T) {
	s := newServerOf(t, []workflow.Source{jobs()}, nil)
	long := strings.Repeat("x", 256)
	for query, tt := range map[string]struct {
		filter, detail string
		code           workflow.Code
	}{
		"workflow=jbo":                      {`{"workflow":"jbo"}`, `"jbo"`, workflow.WorkflowNotFound},
		"business_key=J-1":                  {`{"business_key":"J-1"}`, "needs the workflow", workflow.InvalidRequest},
		"workflow=job&attr.colour=red":      {`{"workflow":"job","attributes":{"colour":"red"}}`, `no attribute "colour"`, workflow.InvalidRequest},
		"workflow=job&business_key=" + long: {`{"workflow":"job","business_key":"` + long + `"}`, "longer than 255 bytes", workflow.InvalidRequest},
		"workflow=job&attr.team=%00":        {`{"workflow":"job","attributes":{"team":"\u0000"}}`, "NUL", workflow.InvalidRequest},
	} {
		for _, accept := range []string{"application/json", "text/event-stream"} {
			p := s.get("/v1/events?"+query, "Accept", accept).wantProblem(t, tt.code.Info().Status, tt.code)
			assert.Contains(t, p.Detail, tt.detail, query)
		}
		c := s.dial()
		c.send(`{"op":"subscribe","id":"a","after":"start","filter":` + tt.filter + `}`)
		if m := c.next(); m.Op != "error" || m.ID != "a" || m.Code != tt.code || !strings.Contains(m.Detail, tt.detail) {
			t.Errorf("%s: %+v", tt.filter, m)
		}
		c.subscribe("a", `"now"`, `{"workflow":"job","attributes":{"team":"red"}}`) // the connection goes on
	}
}
