package client_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/client"
	"github.com/pawlhq/pawl/workflow"
)

// answers is a transport with scripted responses, the last one repeated, that records hosts and
// times.
type answers struct {
	list  []func(*http.Request) (*http.Response, error)
	hosts []string
	times []time.Time
}

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	next := a.list[min(len(a.hosts), len(a.list)-1)]
	a.hosts, a.times = append(a.hosts, r.URL.Host), append(a.times, time.Now())
	return next(r)
}

func reply(status int, body string, headers ...string) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		h := http.Header{}
		for i := 0; i < len(headers); i += 2 {
			h.Set(headers[i], headers[i+1])
		}
		return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
	}
}

func problem(code workflow.Code, headers ...string) func(*http.Request) (*http.Response, error) {
	return reply(code.Info().Status, `{"code":"`+string(code)+`","status":`+"503"+`,"detail":"not now"}`, headers...)
}

func broken(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF }

const done = `{"instance":"0197f6a0-0000-7000-8000-000000000001","workflow":"w","transition":"t","state":"s","version":1,` +
	`"at":"2030-01-01T00:00:00Z"}`

// asked returns the result of a client with one or more addresses and minimal delays.
func asked(t *testing.T, a *answers, hosts ...string) (client.Receipt, error) {
	t.Helper()
	config := client.Config{HTTP: &http.Client{Transport: a}, Retry: client.Retry{Attempts: 4, First: 1, Max: 1}}
	for _, host := range hosts {
		config.URLs = append(config.URLs, "http://"+host+"/pawl/")
	}
	c, err := client.New(config)
	require.NoError(t, err)
	return c.Submit(t.Context(), client.Command{Workflow: "w", Transition: "t"})
}

func TestRetryAfterIsRespected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		date := time.Now().Add(50 * time.Second).UTC().Format(http.TimeFormat)
		a := &answers{list: []func(*http.Request) (*http.Response, error){
			problem(workflow.RateLimited, "Retry-After", "7"), problem(workflow.Overloaded, "Retry-After", date),
			problem(workflow.Overloaded, "Retry-After", "3600"), // counts as a minute
			reply(200, done),
		}}
		began := time.Now()
		r, err := asked(t, a, "one")
		assert.Truef(t, err == nil && r.Version == 1, "%+v, %v", r, err)
		var after []time.Duration
		for _, at := range a.times {
			after = append(after, at.Sub(began).Truncate(time.Second))
		}
		want := []time.Duration{0, 7 * time.Second, 50 * time.Second, 110 * time.Second}
		assert.Truef(t, slices.Equal(after, want), "asked after %v, want %v", after, want)
	})
}

func TestBackoffIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &answers{list: []func(*http.Request) (*http.Response, error){problem(workflow.Locked)}}
		c, err := client.New(client.Config{URLs: []string{"http://one"}, HTTP: &http.Client{Transport: a},
			Retry: client.Retry{Attempts: 100, First: time.Second, Max: 8 * time.Second}})
		require.NoError(t, err)
		_, err = c.Submit(t.Context(), client.Command{Workflow: "w", Transition: "t"})
		wantCode(t, err, workflow.Locked)
		longest := time.Duration(0)
		for i := range len(a.times) - 1 {
			pause, ceiling := a.times[i+1].Sub(a.times[i]), min(time.Second<<i, 8*time.Second)
			if i > 3 {
				ceiling = 8 * time.Second
			}
			longest = max(longest, pause)
			assert.Truef(t, pause <= ceiling, "pause %d is %v, and %v at most", i, pause, ceiling)
		}
		if len(a.times) != 100 || longest < 4*time.Second { // of 96 that are up to 8 s
			t.Errorf("%d attempts, the longest pause is %v", len(a.times), longest)
		}
	})
}

func TestClientSticksToServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &answers{list: []func(*http.Request) (*http.Response, error){
			broken, problem(workflow.ShuttingDown, "Retry-After", "1"), reply(502, "<html>"), // all addresses: a delay, then again
			reply(503, "no healthy upstream"), problem(workflow.RateLimited), reply(200, `{"instance":`), reply(200, done),
		}}
		_, err := asked(t, a, "one", "two", "three")
		assert.NoError(t, err)
		want := []string{"one", "two", "three", "one", "two", "two", "three"}
		assert.Truef(t, slices.Equal(a.hosts, want), "asked are %v, want %v", a.hosts, want)
	})
}

// During a roll-out an address may belong to a node without a version that another one has.
func TestUnknownVersionSwitchesNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		unknown := `{"code":"` + string(workflow.NotOnThisNode) + `","status":503,"detail":"another node may"}`
		for name, c := range map[string]struct {
			answers []func(*http.Request) (*http.Response, error)
			submit  func(*client.Client) error
		}{
			"a command": {[]func(*http.Request) (*http.Response, error){
				problem(workflow.NotOnThisNode, "Retry-After", "9"), reply(200, done),
			},
				func(c *client.Client) error {
					_, err := c.Submit(t.Context(), client.Command{Workflow: "w", Transition: "t"})
					return err
				}},
			"one of many": {[]func(*http.Request) (*http.Response, error){
				reply(200, `[{"status":503,"body":`+unknown+`},{"status":503,"body":{"code":"locked","status":503,"detail":"not now"}}]`),
				reply(200, `[{"status":200,"body":`+done+`},{"status":200,"body":`+done+`}]`),
			}, func(c *client.Client) error {
				many := c.SubmitMany(t.Context(), []client.Command{{Workflow: "w", Transition: "t"}, {Workflow: "w", Transition: "t"}})
				return errors.Join(many[0].Err, many[1].Err)
			}},
		} {
			a := &answers{list: c.answers}
			config := client.Config{URLs: []string{"http://old", "http://new"}, HTTP: &http.Client{Transport: a}}
			one, err := client.New(config)
			if err == nil {
				err = c.submit(one)
			}
			assert.Truef(t, err == nil && slices.Equal(a.hosts, []string{"old", "new"}) && a.times[1] == a.times[0],
				"%s: asked are %v at %v, %v", name, a.hosts, a.times, err)
		}
	})
}

func TestFinalErrorsAreNotRetried(t *testing.T) {
	for name, c := range map[string]struct {
		answer   func(*http.Request) (*http.Response, error)
		code     workflow.Code
		requests int
	}{
		"a refusal":           {problem(workflow.GuardRefused), workflow.GuardRefused, 1},
		"no credential":       {problem(workflow.Unauthorized), workflow.Unauthorized, 1},
		"another's server":    {reply(404, "not here"), workflow.NotFound, 1},
		"a redirection":       {reply(307, "", "Location", "http://elsewhere/"), workflow.InvalidRequest, 1},
		"a code of later":     {reply(418, `{"code":"teapot","status":418,"detail":"short and stout"}`), "teapot", 1},
		"one that may pass":   {reply(503, `{"code":"tired","status":503,"detail":"yawns"}`), "tired", 4},
		"a proxy alone":       {reply(502, "<html>"), workflow.TimedOut, 4},
		"no JSON":             {reply(200, "<html>"), workflow.TimedOut, 4},
		"nobody":              {broken, workflow.TimedOut, 4},
		"a proxy with limits": {reply(429, "slow down"), workflow.TimedOut, 4},
	} {
		synctest.Test(t, func(t *testing.T) {
			a := &answers{list: []func(*http.Request) (*http.Response, error){c.answer}}
			if _, err := asked(t, a, "one"); workflow.CodeOf(err) != c.code || len(a.hosts) != c.requests {
				t.Errorf("%s: %v after %d requests", name, err, len(a.hosts))
			}
		})
	}
}

// After a duplicated response on a connection, every later one would be taken for that of the next
// request.
func TestResponseToOtherRequestIsRejected(t *testing.T) {
	var former string
	stale := func(r *http.Request) (*http.Response, error) {
		return reply(200, strings.Replace(done, `"version":1`, `"version":9`, 1), "X-Request-Id", former)(r)
	}
	own := func(r *http.Request) (*http.Response, error) {
		former = r.Header.Get("X-Request-Id")
		return reply(200, done, "X-Request-Id", former)(r)
	}
	proxys := func(r *http.Request) (*http.Response, error) { return reply(200, done, "X-Request-Id", "edge-7")(r) }
	a := &answers{list: []func(*http.Request) (*http.Response, error){own, stale, stale, own, proxys}}
	c, err := client.New(client.Config{URLs: []string{"http://one"}, HTTP: &http.Client{Transport: a}, Retry: client.Retry{First: 1, Max: 1}})
	require.NoError(t, err)
	for range 3 {
		if r, err := c.Submit(t.Context(), client.Command{Workflow: "w", Transition: "t"}); err != nil || r.Version != 1 {
			t.Errorf("%+v, %v", r, err)
		}
	}
	assert.Len(t, a.hosts, 5, "requests")
}

func TestRejectedCredentialIsRenewedOnce(t *testing.T) {
	tokens, asked := []string{"old", "fresh"}, 0
	source := func(context.Context) (string, error) {
		asked++
		return tokens[min(asked-1, 1)], nil
	}
	a := &answers{list: []func(*http.Request) (*http.Response, error){func(r *http.Request) (*http.Response, error) {
		if r.Header.Get("Authorization") != "Bearer fresh" {
			return problem(workflow.Unauthorized)(r)
		}
		return reply(200, done)(r)
	}}}
	c, err := client.New(client.Config{URLs: []string{"http://one"}, HTTP: &http.Client{Transport: a}, TokenSource: source,
		PlainHTTP: true})
	require.NoError(t, err)
	_, err = c.Submit(t.Context(), client.Command{Workflow: "w", Transition: "t"})
	assert.Truef(t, err == nil && asked == 2, "%v, asked for %d credentials", err, asked)
	tokens[1] = "revoked"
	_, err = c.Me(t.Context(), "")
	assert.Truef(t, workflow.CodeOf(err) == workflow.Unauthorized && asked == 4, "%v, asked for %d credentials", err, asked)
}

func TestContextEndsCall(t *testing.T) {
	waits := func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, context.Cause(r.Context())
	}
	for name, answer := range map[string]func(*http.Request) (*http.Response, error){
		"without an answer": waits, "between attempts": problem(workflow.Paused, "Retry-After", "3600"),
		"in the body": func(r *http.Request) (*http.Response, error) {
			response, err := reply(200, done)(r)
			response.Body = io.NopCloser(readerFunc(func([]byte) (int, error) { _, err := waits(r); return 0, err }))
			return response, err
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			a := &answers{list: []func(*http.Request) (*http.Response, error){answer}}
			c, err := client.New(client.Config{URLs: []string{"http://one"}, HTTP: &http.Client{Transport: a}})
			require.NoError(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			began := time.Now()
			ends := map[string]error{}
			_, ends["Submit"] = c.Submit(ctx, client.Command{Workflow: "w", Transition: "t"})
			ends["SubmitMany"] = c.SubmitMany(ctx, []client.Command{{Workflow: "w", Transition: "t"}})[0].Err
			_, ends["Wait"] = c.Wait(ctx, "s", "k")
			for _, err := range c.Instances(ctx, client.InstanceFilter{}) {
				ends["Instances"] = err
			}
			for what, err := range ends {
				if !errors.Is(err, context.DeadlineExceeded) || workflow.CodeOf(err) != workflow.TimedOut || time.Since(began) != time.Second {
					t.Errorf("%s, %s: %v after %v", name, what, err, time.Since(began))
				}
			}
		})
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// A node that does not respond delays a caller by at most the timeout of an attempt.
func TestAttemptHasTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &answers{list: []func(*http.Request) (*http.Response, error){func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, context.Cause(r.Context())
		}, reply(200, done)}}
		began := time.Now()
		if _, err := asked(t, a, "one", "two"); err != nil || time.Since(began) != 30*time.Second || a.hosts[1] != "two" {
			t.Errorf("%v after %v at %v", err, time.Since(began), a.hosts)
		}
	})
}

type answering = func(*http.Request) (*http.Response, error)

// A refusal of one attempt does not settle another attempt whose response was lost.
func TestUnknownOutcomeIsNotRefused(t *testing.T) {
	overloaded, refused := problem(workflow.Overloaded), reply(409, `{"code":"guard_refused","status":409,"final":true}`)
	item := reply(200, `[{"status":503,"body":{"code":"overloaded","status":503}}]`)
	for name, tt := range map[string]struct {
		list []answering
		many bool
		want workflow.Code
	}{
		"never anything but refused":             {[]answering{overloaded}, false, workflow.Overloaded},
		"lost, then refused":                     {[]answering{broken, overloaded}, false, workflow.TimedOut},
		"refused, then lost":                     {[]answering{overloaded, broken}, false, workflow.TimedOut},
		"not known, then refused":                {[]answering{problem(workflow.Unavailable), overloaded}, false, workflow.TimedOut},
		"lost, then refused for good":            {[]answering{broken, refused}, false, workflow.GuardRefused},
		"of many: never anything but refused":    {[]answering{item}, true, workflow.Overloaded},
		"of many: lost, then refused":            {[]answering{broken, item}, true, workflow.TimedOut},
		"of many: refused, then lost":            {[]answering{item, broken}, true, workflow.TimedOut},
		"of many: lost, then the whole request":  {[]answering{broken, overloaded}, true, workflow.TimedOut},
		"of many: refused, by the whole request": {[]answering{item, overloaded}, true, workflow.Overloaded},
	} {
		synctest.Test(t, func(t *testing.T) { // without real delays
			c, err := client.New(client.Config{URLs: []string{"http://one"}, HTTP: &http.Client{Transport: &answers{list: tt.list}},
				Retry: client.Retry{Attempts: 4, First: 1, Max: 1}})
			require.NoError(t, err)
			var r client.Reply
			if command := (client.Command{Workflow: "w", Transition: "t"}); tt.many {
				r = c.SubmitMany(t.Context(), []client.Command{command})[0]
			} else {
				r.Receipt, r.Err = c.Submit(t.Context(), command)
			}
			status := tt.want.Info().Status
			if tt.want == workflow.TimedOut {
				status = 0
			}
			assert.Truef(t, workflow.CodeOf(r.Err) == tt.want && r.Receipt.Key != "" && r.Receipt.Status == status,
				"%s: %d, %v", name, r.Receipt.Status, r.Err)
		})
	}
}

// A server that accepts subscriptions and then disconnects, or sends invalid events, causes an
// error eventually.
func TestSubscriptionWithoutProgressFails(t *testing.T) {
	for name, messages := range map[string][]string{
		"cut off":  nil,
		"no event": {`{"op":"event","id":"log","event":{"id":"x"}}`},
	} {
		var opened atomic.Int64
		node := func() string {
			upgrade := websocket.Upgrader{Subprotocols: []string{wire.Subprotocol}}
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				opened.Add(1)
				conn, err := upgrade.Upgrade(w, r, nil)
				if err != nil {
					return
				}
				defer conn.Close()
				_, _, _ = conn.ReadMessage()
				for _, m := range append([]string{`{"op":"subscribed","id":"log","after":5}`}, messages...) {
					_ = conn.WriteMessage(websocket.TextMessage, []byte(m))
				}
			}))
			t.Cleanup(s.Close)
			return s.URL
		}
		c, err := client.New(client.Config{URLs: []string{node(), node()}, Retry: client.Retry{Attempts: 3, First: 1, Max: 1}})
		require.NoError(t, err)
		var last error
		for _, last = range c.Subscribe(t.Context(), client.Start, client.Filter{}) {
		}
		assert.Truef(t, workflow.CodeOf(last) == workflow.TimedOut && opened.Load() == 6,
			"%s: %d connections, %v", name, opened.Load(), last)
		c.Close()
	}
}
