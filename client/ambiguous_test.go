package client_test

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/client"
	"github.com/pawlhq/pawl/workflow"
)

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
