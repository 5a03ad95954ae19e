package stream

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

// WebSocket follows the log and commands over WebSocket. may says why the client may not
// do what it asks; what is wrong with a handshake is answered by refuse.
func (srv *Server) WebSocket(w http.ResponseWriter, r *http.Request, tenant string, may func(context.Context, Ask) error,
	refuse func(error)) error {
	if offers := websocket.Subprotocols(r); len(offers) > 0 && !slices.Contains(offers, Subprotocol) {
		return workflow.Errorf(workflow.InvalidRequest, "the WebSocket subprotocol is %s", Subprotocol)
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	x := &stream{end: func() { cancel(goingAway) }, reads: true}
	if err := srv.add(x); err != nil {
		return err
	}
	defer srv.remove(x)

	ws, err := upgrader(refuse).Upgrade(w, r, w.Header())
	if err != nil {
		return nil // it was answered
	}
	socket := ws.NetConn()
	srv.arm(x, func() { _ = socket.Close() })
	c := &conn{
		server: srv, tenant: tenant, may: may, ws: ws, cancel: cancel,
		out: make(chan outgoing), tasks: map[string]*task{},
	}
	c.serve(ctx, newWriter(c, socket))
	return nil
}

// upgrader refuses another origin than the server's own, as gorilla does by
// default, with problem documents.
func upgrader(refuse func(error)) *websocket.Upgrader {
	return &websocket.Upgrader{
		Subprotocols:    []string{Subprotocol},
		WriteBufferPool: &unusedBuffers,
		Error: func(_ http.ResponseWriter, _ *http.Request, status int, reason error) {
			code := workflow.InvalidRequest
			switch status {
			case http.StatusForbidden:
				code = workflow.Forbidden
			case http.StatusInternalServerError:
				code = workflow.Internal
			}
			refuse(&workflow.Error{Code: code, Message: reason.Error()})
		},
	}
}

// unusedBuffers keeps gorilla from holding a write buffer for each connection:
// everything is written by [writer].
var unusedBuffers sync.Pool
