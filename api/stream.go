package api

import (
	"context"
	"net/http"
	"slices"
	"sync"

	"github.com/gorilla/websocket"

	"github.com/pawlhq/pawl/workflow"
)

// Subprotocol is the WebSocket subprotocol that this package speaks. A client
// that offers none is taken to mean it.
const Subprotocol = "pawl.v1"

// stream follows the log and commands over WebSocket: GET /v1/stream.
func (a *API) stream(w http.ResponseWriter, r *request) error {
	if offers := websocket.Subprotocols(r.Request); len(offers) > 0 && !slices.Contains(offers, Subprotocol) {
		return workflow.Errorf(workflow.InvalidRequest, "the WebSocket subprotocol is %s", Subprotocol)
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	x := &stream{end: func() { cancel(goingAway) }, reads: true}
	if err := a.streams.add(x); err != nil {
		return err
	}
	defer a.streams.remove(x)

	ws, err := a.upgrader().Upgrade(w, r.Request, nil)
	if err != nil {
		return nil // it was answered
	}
	socket := ws.NetConn()
	a.streams.arm(x, func() { _ = socket.Close() })
	c := &conn{
		api: a, tenant: r.tenant(), ws: ws, cancel: cancel,
		out: make(chan outgoing), tasks: map[string]*task{},
	}
	c.serve(ctx, newWriter(c, socket))
	return nil
}

// upgrader refuses another origin than the server's own, as gorilla does by
// default, with problem documents.
func (a *API) upgrader() *websocket.Upgrader {
	return &websocket.Upgrader{
		Subprotocols:    []string{Subprotocol},
		WriteBufferPool: &unusedBuffers,
		Error: func(w http.ResponseWriter, r *http.Request, status int, reason error) {
			code := workflow.InvalidRequest
			switch status {
			case http.StatusForbidden:
				code = workflow.Forbidden
			case http.StatusInternalServerError:
				code = workflow.Internal
			}
			a.fail(w, r, &workflow.Error{Code: code, Message: reason.Error()})
		},
	}
}

// unusedBuffers keeps gorilla from holding a write buffer for each connection:
// everything is written by [writer].
var unusedBuffers sync.Pool
