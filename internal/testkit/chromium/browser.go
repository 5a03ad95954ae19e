package chromium

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/gorilla/websocket"

	"github.com/pawlhq/pawl/internal/testkit/await"
)

// Browser is a running Chromium.
type Browser struct {
	t  testing.TB
	ws *websocket.Conn

	mu       sync.Mutex
	last     int                     // the id of the newest request
	waiting  map[int]chan<- received // by the id of a request
	pages    map[string]*Page        // by session
	gone     error                   // why nothing more comes
	finished chan struct{}           // closed when nothing more is read
}

// sent is a request of DevTools.
type sent struct {
	ID      int    `json:"id"`
	Method  string `json:"method"`
	Params  any    `json:"params,omitempty"`
	Session string `json:"sessionId,omitempty"`
}

// received is an answer, which has an id, or an event, which has a method.
type received struct {
	ID      int            `json:"id"`
	Method  string         `json:"method"`
	Params  jsontext.Value `json:"params"`
	Session string         `json:"sessionId"`
	Result  jsontext.Value `json:"result"`
	Error   *struct {
		Message string `json:"message"`
	} `json:"error"`
}

func connect(t testing.TB, url string) *Browser {
	t.Helper()
	ws, _, err := websocket.DefaultDialer.DialContext(t.Context(), url, nil)
	if err != nil {
		t.Fatal(err)
	}
	b := &Browser{t: t, ws: ws, waiting: map[int]chan<- received{}, pages: map[string]*Page{}, finished: make(chan struct{})}
	go b.read()
	t.Cleanup(func() {
		_ = ws.Close()
		<-b.finished
	})
	return b
}

// read hands out what comes until the connection ends.
func (b *Browser) read() {
	defer close(b.finished)
	for {
		_, text, err := b.ws.ReadMessage()
		if err != nil {
			b.end(err)
			return
		}
		var m received
		if err := json.Unmarshal(text, &m); err != nil {
			b.end(fmt.Errorf("DevTools: %w in %.200s", err, text))
			return
		}
		b.mu.Lock()
		waiting, page := b.waiting[m.ID], b.pages[m.Session]
		delete(b.waiting, m.ID)
		b.mu.Unlock()
		switch {
		case m.Method == "" && waiting != nil:
			waiting <- m
		case m.Method != "" && page != nil:
			page.note(m.Method, m.Params)
		}
	}
}

func (b *Browser) end(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gone = err
	for id, waiting := range b.waiting {
		delete(b.waiting, id)
		close(waiting)
	}
}

// ask sends a request and reads its answer into result, if that is not nil.
func (b *Browser) ask(session, method string, params, result any) error {
	b.t.Helper()
	answered := make(chan received, 1)
	b.mu.Lock()
	b.last++
	m := sent{ID: b.last, Method: method, Params: params, Session: session}
	text, err := json.Marshal(m)
	if err = errors.Join(b.gone, err); err == nil {
		b.waiting[m.ID] = answered
		err = b.ws.WriteMessage(websocket.TextMessage, text)
	}
	b.mu.Unlock()
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	answer := await.Receive(b.t, "the answer to "+method, answered)
	switch {
	case answer.ID == 0:
		return fmt.Errorf("%s: the browser is gone", method)
	case answer.Error != nil:
		return fmt.Errorf("%s: %s", method, answer.Error.Message)
	case result == nil:
		return nil
	}
	return json.Unmarshal(answer.Result, result)
}

// do is ask where a failure ends the test.
func (b *Browser) do(session, method string, params, result any) {
	b.t.Helper()
	if err := b.ask(session, method, params, result); err != nil {
		b.t.Fatal(err)
	}
}
