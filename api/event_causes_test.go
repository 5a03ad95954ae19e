package api_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/inbox/signature"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/outbox/relay"
	"github.com/pawlhq/pawl/outbox/sink/webhook"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Job is the data of a workflow that everything happens to which can cause a
// transition.
type Job struct {
	Team string `json:"team,omitempty"`
}

type Open struct {
	Number string `json:"number" validate:"required"`
	Team   string `json:"team"`
}

type Move struct {
	Team string `json:"team"`
}

// jobs charges for nothing that comes to an end by itself.
func jobs() workflow.Source {
	const todo workflow.State = "todo"
	nothing := func(*workflow.Call, *Job, workflow.None) error { return nil }
	open := func(_ *workflow.Call, d *Job, p Open) error {
		d.Team = p.Team
		return nil
	}
	return workflow.Define("job", 1,
		workflow.Start("open", todo, open).BusinessKey(func(p Open) string { return p.Number }),
		workflow.Start("part", "done", nothing),
		workflow.On("note", workflow.From(todo), workflow.Stay, nothing),
		workflow.On("hurry", workflow.From(todo), workflow.Stay, nothing),
		workflow.On("move", workflow.From(todo), workflow.Stay, func(c *workflow.Call, d *Job, p Move) error {
			d.Team = p.Team
			c.Because("it is\nelsewhere")
			c.Emit("job.moved", p)
			return nil
		}),
		workflow.On("nudge", workflow.From(todo), workflow.Stay, nothing).Receive("bank",
			workflow.JSON(func(_ workflow.Message, number string) (workflow.Address, workflow.None, error) {
				return workflow.Address{BusinessKey: number}, workflow.None{}, nil
			})),
		workflow.On("split", workflow.From(todo), workflow.Stay, func(c *workflow.Call, _ *Job, _ workflow.None) error {
			c.Spawn(workflow.Child{Workflow: "job", Transition: "part", End: "joined"})
			return nil
		}),
		workflow.On("joined", workflow.From(todo), workflow.Stay, func(*workflow.Call, *Job, workflow.Ended[Job]) error { return nil }),
		workflow.Do("charge", workflow.From(todo), "charging", todo,
			func(context.Context, *workflow.Attempt, Job, workflow.None) (workflow.None, error) {
				return workflow.None{}, context.DeadlineExceeded // nobody knows
			}, nothing).
			OrElse(todo, func(*workflow.Call, *Job, workflow.Failure) error { return nil }).AskOperator().
			Undo(func(context.Context, *workflow.Attempt, Job, workflow.None, *workflow.None) error { return nil }),
	).Final("done").Attr("team", func(d Job) string { return d.Team }).
		After("patience", workflow.From(todo), time.Millisecond, "hurry")
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

// settle does what an operator says to the next command that is stuck.
func (s *server) settle(action, more string) transitions.Ref {
	s.t.Helper()
	var page api.CommandPage
	await.Eventually(s.t, "a command is stuck", func() bool {
		page = read[api.CommandPage](s.t, s.get("/v1/ops/stuck"))
		return len(page.Commands) == 1
	})
	c := page.Commands[0]
	s.operate(action, action+" "+c.Key, c, `,"reason":"seen on the statement"`+more, "Pawl-Actor", "olga").want(s.t, 200)
	return transitions.Ref{Tenant: transitions.DefaultTenant, Scope: c.Scope, Key: c.Key}
}

// eventWorld is a log in which a transition has happened for every cause.
func eventWorld(t *testing.T, sinks ...relay.Sink) (s *server, id uuid.UUID, charged transitions.Ref) {
	t.Helper()
	s = newServerOf(t, []workflow.Source{jobs()}, sinks)
	a := s.post("/v1/workflows/job/open", "o-1", `{"number":"J-1","team":"red"}`, "Pawl-Actor", "ann")
	a.want(t, 201)
	id = read[transitions.Result](t, a).Instance
	path := "/v1/instances/" + id.String() + "/"
	s.post(path+"note", "n-1", `{}`, "Pawl-Actor", "ann", "Pawl-Not-Before", inAnHour()).want(t, 202)
	s.comes("n-1")
	s.post(path+"move", "m-1", `{"team":"blue"}`, "Pawl-Actor", "bob", "Idempotency-Scope", "moves").want(t, 200)
	s.post(path+"split", "s-1", `{}`, "Pawl-Actor", "ann").want(t, 200)
	_, err := s.engine.Consume(t.Context(), transitions.Message{Consumer: "bank", ID: "msg-1", Body: []byte(`"J-1"`)})
	require.NoError(t, err)
	s.happened("job.joined", "job.hurry", "job.note") // which cannot be while it is charged
	s.post(path+"charge", "c-1", `{}`, "Pawl-Actor", "ann").want(t, 202)
	s.settle("resolve", `,"result":{}`)
	s.post(path+"charge", "c-2", `{}`, "Pawl-Actor", "ann").want(t, 202)
	s.settle("retry", "")
	charged = s.settle("abandon", "")
	s.happened("job.charge.undone")
	s.post("/v1/ops/instances/"+id.String()+"/pause", "p-1", `{"reason":"a holiday"}`, "Pawl-Actor", "olga").want(t, 200)
	return s, id, charged
}

// inAnHour is a time that has not come when a command of now arrives.
func inAnHour() string { return time.Now().Add(time.Hour).UTC().Format(time.RFC3339Nano) }

// comes lets the time come of the command that is scheduled with a key.
func (s *server) comes(key string) {
	s.t.Helper()
	s.exec("UPDATE pawl.command SET run_at = now() WHERE key = $1 AND phase = 'scheduled'", key)
}

// happened waits until there are events of these types.
func (s *server) happened(types ...string) {
	s.t.Helper()
	await.Eventually(s.t, "the events are there", func() bool {
		seen := toldBy(s.t, s.allEvents(""))
		return !slices.ContainsFunc(types, func(kind string) bool { return seen[kind] == nil })
	})
}

// A reader of an event needs no second request: it tells who, why, from which state,
// to which, by which key, about which business key, and what it comes from.
func TestAnEventTellsWhatItComesFrom(t *testing.T) {
	sink, got := hook(t, "crm", nil)
	s, id, charged := eventWorld(t, sink)
	all := s.allEvents("")
	seen := toldBy(t, all)
	scope, child := "job:"+id.String(), ""
	if part := seen["job.part"]; part != nil {
		child, _ = part["instance"].(string)
	}
	for kind, want := range map[string]map[string]any{
		"job.open":  {"cause": "caller", "actor": "ann", "scope": "job:open", "key": "o-1", "state": "todo"},
		"job.note":  {"cause": "caller", "actor": "ann", "scope": scope, "key": "n-1", "from": "todo"},
		"job.move":  {"cause": "caller", "actor": "bob", "scope": "moves", "key": "m-1", "from": "todo", "reason": "it is elsewhere"},
		"job.moved": {"cause": "caller", "actor": "bob", "scope": "moves", "key": "m-1", "from": "todo", "reason": "it is elsewhere"},
		"job.hurry": {"cause": "timer", "causedby": "patience", "actor": "pawl:timer", "scope": "pawl:timer:" + id.String() + ":patience",
			"from": "todo"},
		"job.split": {"cause": "caller", "actor": "ann", "scope": scope, "key": "s-1", "from": "todo"},
		"job.part": {"cause": "parent", "causedby": id.String(), "actor": "ann", "scope": "pawl:child:" + id.String(),
			"instance": child, "subject": child, "businesskey": nil, "state": "done"},
		"job.joined": {"cause": "child", "causedby": child, "actor": "pawl:child", "scope": "pawl:end:" + child, "key": "ended",
			"from": "todo"},
		"job.nudge": {"cause": "message", "causedby": "bank", "actor": "inbox:bank", "scope": "inbox:bank", "key": "msg-1",
			"from": "todo"},
		"job.charge.accepted": {"cause": "caller", "actor": "ann", "scope": scope, "key": "c-2", "from": "todo", "state": "charging"},
		"job.charge": {"cause": "operator", "actor": "olga", "scope": scope, "key": "c-1", "from": "charging",
			"reason": "seen on the statement"},
		"job.charge.retried": {"cause": "operator", "actor": "olga", "scope": "ops:" + id.String(), "from": "charging",
			"reason": "seen on the statement"},
		"job.charge.failed": {"cause": "operator", "actor": "olga", "scope": scope, "key": "c-2", "from": "charging",
			"reason": "seen on the statement"},
		"job.charge.undone": {"cause": "undo", "causedby": transitions.EffectKey(charged), "key": transitions.EffectKey(charged),
			"actor": "pawl:undo",
			"scope": "pawl:undo:" + id.String(), "from": "todo"},
		"job.pawl.paused": {"cause": "operator", "actor": "olga", "scope": "ops:" + id.String(), "key": "p-1", "reason": "a holiday",
			"from": "todo"},
	} {
		e := seen[kind]
		if e == nil {
			t.Errorf("there is no %s", kind)
			continue
		}
		expect := map[string]any{"instance": id.String(), "subject": "J-1", "businesskey": "J-1", "workflow": "job", "from": nil, "reason": nil,
			"causedby":        nil,
			"datacontenttype": "application/json", "redacted": nil}
		maps.Copy(expect, want)
		for name, value := range expect {
			assert.Truef(t, e[name] == value, "%s: %s is %v, want %v", kind, name, e[name], value)
		}
		_, has := e["data"]
		assert.Truef(t, has, "%s has no data", kind)
	}

	// The history says the same.
	caused := map[string]string{}
	for _, e := range read[wire.History](t, s.get("/v1/instances/"+id.String()+"/history")).Entries {
		caused[fmt.Sprint(e.Position)] = fmt.Sprint(e.Transition, " ", e.Cause, " ", e.CausedBy)
	}
	for kind, e := range seen {
		by, _ := e["causedby"].(string)
		want := fmt.Sprint(e["transition"], " ", e["cause"], " ", by)
		assert.Falsef(t, e["instance"] == id.String() && caused[e["position"].(string)] != want,
			"%s: the history says %q, the event %q", kind, caused[e["position"].(string)], want)
	}
	v, err := s.engine.Admin().Verify(t.Context(), transitions.DefaultTenant, uuid.Nil)
	assert.Truef(t, err == nil && len(v.Broken) == 0, "verify: %+v, %v", v, err)

	// The same text, whoever reads it.
	await.Eventually(t, "the webhook has every event", func() bool { return got.has(all) })
	c := s.dial()
	c.subscribe("a", `"start"`, `{}`)
	for _, want := range all {
		m := c.next()
		assert.Equalf(t, string(want), string(m.Event), "over WebSocket: %s, want %s", m.Event, want)
	}
	stream, cut := s.source("/v1/events?after=start")
	defer cut()
	stream.until(func() bool { return len(stream.raw) == len(all) })
	for n, want := range all {
		assert.Equalf(t, string(want), stream.raw[n], "as server-sent events, want %s", want)
	}
	for _, e := range s.followed(len(all)) {
		text := seen[e.Type]
		assert.Falsef(t, text["id"] == e.ID() && (text["cause"] != string(e.Cause) || text["actor"] != e.Actor || text["key"] != e.Key ||
			text["subject"] != e.Subject()), "in Go: %+v", e)
	}
}

// followed are the first n events of the log, as they are read in Go.
func (s *server) followed(n int) (all []transitions.Logged) {
	s.t.Helper()
	f := s.engine.Read().Follow(transitions.DefaultTenant, 0)
	defer f.Close()
	for len(all) < n {
		b, err := f.Next(s.t.Context())
		if err != nil {
			s.t.Fatal(err)
		}
		all = append(all, b.Events...)
	}
	return all[:n]
}

// An event whose audit row was erased says so, and has the rest.
func TestAnErasedEventSaysSo(t *testing.T) {
	s := newServer(t)
	id := s.packed("1")
	_, err := s.pool.Exec(t.Context(), "UPDATE pawl.audit SET data = NULL, data_digest = sha256('x') WHERE instance = $1", id)
	require.NoError(t, err)
	e := toldBy(t, s.allEvents(""))["parcel.pack"]
	_, has := e["data"]
	assert.Truef(t, !has && e["redacted"] == true && e["datacontenttype"] == nil && e["actor"] == "local" && e["instance"] == id.String(),
		"got %v", e)
}

func TestEvents_Filters(t *testing.T) {
	blue, got := hook(t, "blue", &transitions.EventFilter{Workflow: "job", Attributes: map[string]string{"team": "blue"}})
	s := newServerOf(t, []workflow.Source{jobs()}, []relay.Sink{blue})
	for _, of := range []struct{ number, team string }{{"J-1", "red"}, {"J-2", "blue"}, {"J/3 é", ""}} {
		a := s.post("/v1/workflows/job/open", of.number, `{"number":"`+of.number+`","team":"`+of.team+`"}`)
		a.want(t, 201)
		path := "/v1/instances/" + read[transitions.Result](t, a).Instance.String() + "/"
		s.post(path+"move", "m", `{"team":"blue"}`).want(t, 200)
	}
	s.packed("200")
	await.Eventually(t, "three jobs hurry", func() bool { return len(s.allEvents("&type=job.hurry")) == 3 }) // from here on nothing happens
	for query, tt := range map[string]struct{ filter, want string }{
		"workflow=job&business_key=J-1": {`{"workflow":"job","business_key":"J-1"}`, "J-1:open J-1:move J-1:moved"},
		"workflow=job&business_key=J-9": {`{"workflow":"job","business_key":"J-9"}`, ""},
		"workflow=job&attr.team=red":    {`{"workflow":"job","attributes":{"team":"red"}}`, "J-1:open"},
		"attr.team=blue&type=job.moved": {`{"attributes":{"team":"blue"},"types":["job.moved"]}`, "J-1:moved J-2:moved J/3 é:moved"},
		"attr.team=blue&attr.heavy=yes": {`{"attributes":{"team":"blue","heavy":"yes"}}`, ""},
		"attr.heavy=yes":                {`{"attributes":{"heavy":"yes"}}`, "pack"},
		"attr.nobody%20has=it":          {`{"attributes":{"nobody has":"it"}}`, ""},
		"workflow=job&attr.team=blue": {`{"workflow":"job","attributes":{"team":"blue"}}`,
			"J-1:move J-1:moved J-2:open J-2:move J-2:moved J/3 é:move J/3 é:moved"},
		"workflow=job&business_key=J/3%20%C3%A9": {`{"workflow":"job","business_key":"J/3 é"}`, "J/3 é:open J/3 é:move J/3 é:moved"},
	} {
		all := s.allEvents("&" + query)
		assert.Equal(t, tt.want, named(t, all), query)
		c := s.dial()
		c.subscribe("a", `"start"`, tt.filter)
		stream, cut := s.source("/v1/events?after=start&" + query)
		stream.until(func() bool { return len(stream.raw) == len(all) })
		cut()
		for n, want := range all {
			m := c.next()
			assert.Equalf(t, string(want), string(m.Event), "%s over WebSocket: %+v, want %s", tt.filter, m, want)
			assert.Falsef(t, n < len(stream.raw) && stream.raw[n] != string(want),
				"%s as server-sent events: %s, want %s", query, stream.raw[n], want)
		}
		m := c.next()
		assert.Equalf(t, "caught_up", m.Op, "%s over WebSocket: then %+v", tt.filter, m)
	}
	await.Eventually(t, "the webhook has the blue team's events", func() bool { return got.has(s.allEvents("&workflow=job&attr.team=blue")) })
	got.mu.Lock()
	defer got.mu.Unlock()
	for _, text := range got.got {
		assert.Truef(t, toldBy(t, []jsontext.Value{jsontext.Value(text)})["job.open"]["businesskey"] != "J-1", "the sink got %s", text)
	}
}

// named are the events but those of timers, which come when they come.
func named(t *testing.T, all []jsontext.Value) string {
	t.Helper()
	var names []string
	for _, text := range all {
		for kind, e := range toldBy(t, []jsontext.Value{text}) {
			if e["cause"] == "caller" {
				key, _ := e["businesskey"].(string)
				_, name, _ := strings.Cut(kind, ".")
				names = append(names, strings.TrimPrefix(key+":"+name, ":"))
			}
		}
	}
	return strings.Join(names, " ")
}

// A workflow that is not there is the caller's mistake wherever one is named.
func TestEvents_UnknownWorkflow(t *testing.T) {
	s := newServerOf(t, []workflow.Source{jobs()}, nil)
	want := s.get("/v1/instances?workflow=jbo").wantProblem(t, 404, workflow.WorkflowNotFound).Detail
	for _, accept := range []string{"application/json", "text/event-stream"} {
		p := s.get("/v1/events?workflow=jbo", "Accept", accept).wantProblem(t, 404, workflow.WorkflowNotFound)
		assert.Equal(t, want, p.Detail, accept)
	}
	c := s.dial()
	c.send(`{"op":"subscribe","id":"a","after":"start","filter":{"workflow":"jbo"}}`)
	m := c.next()
	assert.Truef(t, m.Op == "error" && m.ID == "a" && m.Code == workflow.WorkflowNotFound && m.Detail == want, "%+v", m)
}

// An empty value of a filter is no filter, in queries and subscriptions; only for an attribute it is a value.
func TestAnEmptyValueOfAFilterIsNone(t *testing.T) {
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

func TestFiltersOfEventsThatMeanNothingAreRefused(t *testing.T) {
	s := newServerOf(t, []workflow.Source{jobs()}, nil)
	long := strings.Repeat("x", 256)
	for query, tt := range map[string]struct{ filter, detail string }{
		"business_key=J-1":                     {`{"business_key":"J-1"}`, "needs the workflow"},
		"workflow=job&attr.colour=red":         {`{"workflow":"job","attributes":{"colour":"red"}}`, `declares no attribute "colour"`},
		"workflow=job&attr.team=" + long:       {`{"workflow":"job","attributes":{"team":"` + long + `"}}`, "longer than 255 bytes"},
		"workflow=job&business_key=" + long:    {`{"workflow":"job","business_key":"` + long + `"}`, "longer than 255 bytes"},
		"workflow=job&attr.team=%00":           {`{"workflow":"job","attributes":{"team":"\u0000"}}`, "NUL"},
		"workflow=job&attr.team=a&attr.team=b": {"", "2 times"},
		"attr.=a":                              {"", "unknown query parameter"},
		"workflow=job&business_keys=J-1":       {"", "unknown query parameter"},
	} {
		for _, accept := range []string{"application/json", "text/event-stream"} {
			p := s.get("/v1/events?"+query, "Accept", accept).wantProblem(t, 400, workflow.InvalidRequest)
			assert.Contains(t, p.Detail, tt.detail, query)
		}
		if tt.filter == "" {
			continue
		}
		c := s.dial()
		c.send(`{"op":"subscribe","id":"a","after":"start","filter":` + tt.filter + `}`)
		if m := c.next(); m.Op != "error" || m.ID != "a" || m.Code != workflow.InvalidRequest || !strings.Contains(m.Detail, tt.detail) {
			t.Errorf("%s: %+v", tt.filter, m)
		}
		c.subscribe("a", `"now"`, `{"workflow":"job","attributes":{"team":"red"}}`) // the connection goes on
	}
}
