package faults

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// slowly is a workflow whose activity goes on when the test says so.
func slowly(step <-chan error) *workflow.Definition[struct{}] {
	return workflow.Define("slowly", 1,
		workflow.Start("open", "open", func(*workflow.Call, *struct{}, workflow.None) error { return nil }),
		workflow.Do("run", workflow.From("open"), "running", "done",
			func(ctx context.Context, a *workflow.Attempt, _ struct{}, _ workflow.None) (string, error) {
				if err := a.Report(map[string]int{"attempt": a.Number}); err != nil {
					return "", err
				}
				select {
				case err := <-step:
					return "ok", err
				case <-ctx.Done():
					return "", ctx.Err()
				}
			},
			func(*workflow.Call, *struct{}, string) error { return nil }).
			OrElse("failed", func(*workflow.Call, *struct{}, workflow.Failure) error { return nil }).
			Retry(workflow.Retry{First: time.Hour, Max: time.Hour}),
	).Final("done", "failed")
}

// seen is a status as a client of another node reads it.
type seen struct {
	Status   string         `json:"status"`
	Attempt  int            `json:"attempt"`
	Progress map[string]int `json:"progress"`
}

func (s seen) String() string { return fmt.Sprint(s.Status, " ", s.Attempt, " ", s.Progress) }

// audience are clients of one node that follow a command, each in its way.
type audience struct {
	mu   sync.Mutex
	told map[string][]string // by client, without repetitions
	work sync.WaitGroup
}

func (a *audience) tell(client string, s seen) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if list := a.told[client]; len(list) == 0 || list[len(list)-1] != s.String() {
		a.told[client] = append(list, s.String())
	}
}

// all reports whether every client has been told this.
func (a *audience) all(what string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, list := range a.told {
		if len(list) == 0 || list[len(list)-1] != what {
			return false
		}
	}
	return true
}

// One node works, and the clients of another see every status: by asking again
// and again, by an event stream, by WebSocket; with notifications and without.
func TestEveryStatusIsSeenFromAnotherNode(t *testing.T) {
	for name, pollOnly := range map[string]bool{"with notifications": false, "by polling alone": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			clock := &skew{}
			step := make(chan error)
			node := func(workers int) *engine.Engine {
				return start(t, pool, func(c *engine.Config) {
					c.Workflows, c.PollOnly, c.Now = []workflow.Source{slowly(step)}, pollOnly, clock.now
					c.InFlight.Workers = workers
				})
			}
			works, looks := node(10), node(-1)
			a, err := api.New(looks, api.Config{})
			require.NoError(t, err)
			server := httptest.NewServer(a)
			t.Cleanup(server.Close)
			id := must(t, works, transitions.Command{Workflow: "slowly", Transition: "open", Key: "open"}).Instance
			must(t, works, transitions.Command{Workflow: "slowly", Transition: "run", Key: "run", Instance: id,
				Options: transitions.Options{Scope: "s"}})

			crowd := &audience{told: map[string][]string{"poller": nil, "events": nil, "socket": nil}}
			ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
			defer cancel()
			crowd.follow(t, ctx, "poller", func(tell func(seen)) error { return poll(ctx, server.URL, tell) })
			crowd.follow(t, ctx, "events", func(tell func(seen)) error { return listen(ctx, server.URL, tell) })
			crowd.follow(t, ctx, "socket", func(tell func(seen)) error { return watch(ctx, server.URL, tell) })
			for _, next := range []struct {
				status string
				do     func()
			}{
				{"processing 1 map[attempt:1]", func() { step <- errors.New("not today") }},
				{"failed_retryable 1 map[attempt:1]", func() { clock.skip(time.Hour) }},
				{"processing 2 map[attempt:2]", func() { step <- nil }},
				{"succeeded 2 map[attempt:2]", func() {}},
			} {
				waitUntil(t, "all have seen "+next.status, func() bool { return crowd.all(next.status) })
				next.do()
			}
			crowd.work.Wait()
			if t.Failed() {
				t.Logf("%q", crowd.told)
			}
		})
	}
}

func (a *audience) follow(t *testing.T, ctx context.Context, client string, run func(tell func(seen)) error) {
	a.work.Go(func() {
		err := run(func(s seen) { a.tell(client, s) })
		assert.Falsef(t, err != nil && ctx.Err() == nil, "%s: %v", client, err)
	})
}

func get(ctx context.Context, url string, header map[string]string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/v1/commands/s/run", nil)
	if err != nil {
		return nil, err
	}
	for name, value := range header {
		r.Header.Set(name, value)
	}
	return http.DefaultClient.Do(r)
}

// poll asks for the status, and then for whatever differs from it.
func poll(ctx context.Context, url string, tell func(seen)) error {
	header := map[string]string{"Prefer": "wait=5"}
	for {
		answer, err := get(ctx, url, header)
		if err != nil {
			return err
		}
		var s seen
		if answer.StatusCode == http.StatusOK {
			err = json.UnmarshalRead(answer.Body, &s)
		}
		if err = errors.Join(err, answer.Body.Close()); err != nil {
			return err
		}
		if answer.StatusCode == http.StatusNotModified {
			continue
		}
		tell(s)
		if s.Status == "succeeded" {
			return nil
		}
		header["If-None-Match"] = answer.Header.Get("ETag")
	}
}

// listen reads the event stream to its end.
func listen(ctx context.Context, url string, tell func(seen)) error {
	answer, err := get(ctx, url, map[string]string{"Accept": "text/event-stream"})
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			var s seen
			if err := json.Unmarshal([]byte(data), &s); err != nil {
				return err
			}
			tell(s)
		}
	}
	return lines.Err()
}

// watch follows over WebSocket.
func watch(ctx context.Context, url string, tell func(seen)) error {
	socket, _, err := websocket.DefaultDialer.DialContext(ctx, strings.Replace(url, "http", "ws", 1)+"/v1/stream", nil)
	if err != nil {
		return err
	}
	defer socket.Close()
	defer context.AfterFunc(ctx, func() { _ = socket.Close() })()
	if err := socket.WriteMessage(websocket.TextMessage, []byte(`{"op":"watch","id":"w","scope":"s","key":"run"}`)); err != nil {
		return err
	}
	for {
		_, text, err := socket.ReadMessage()
		if err != nil {
			return err
		}
		var m struct {
			Op      string `json:"op"`
			Final   bool   `json:"final"`
			Command seen   `json:"command"`
		}
		if err := json.Unmarshal(text, &m); err != nil || m.Op != "status" {
			return fmt.Errorf("got %s: %w", text, err)
		}
		tell(m.Command)
		if m.Final {
			return nil
		}
	}
}
