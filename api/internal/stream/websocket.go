package stream

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/pawlhq/pawl/api/internal/budget"
	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/workflow"
)

// Subprotocol is the WebSocket subprotocol that this package speaks. A client
// that offers none is taken to mean it.
const Subprotocol = wire.Subprotocol

// ofCredential begins the subprotocol that is a credential: browsers let pages send no header, but name subprotocols.
const ofCredential = "pawl.ticket."

// Offered takes the credential out of the subprotocols that a client offers, "" for none: own is the request without it. Error:
// Unauthorized.
func Offered(r *http.Request) (own *http.Request, credential string, err error) {
	var rest []string
	for offer := range strings.SplitSeq(strings.Join(r.Header.Values(headerProtocol), ","), ",") {
		offer = strings.TrimSpace(offer)
		found, is := strings.CutPrefix(offer, ofCredential)
		switch {
		case !is:
			rest = append(rest, offer)
		case found == "" || credential != "":
			return r, "", auth.Refuse(auth.Malformed, "among the subprotocols there is not one credential, "+ofCredential+"…")
		default:
			credential = found
		}
	}
	if credential == "" {
		return r, "", nil
	}
	own = r.WithContext(r.Context()) // a copy
	own.Header = r.Header.Clone()
	own.Header.Set(headerProtocol, strings.Join(rest, ", "))
	return own, credential, nil
}

const headerProtocol = "Sec-Websocket-Protocol"

// Peer is who opens a connection.
type Peer struct {
	Tenant string
	May    func(context.Context, Ask) error                                          // why he may not do what he asks
	Renew  func(ctx context.Context, credential string) (until time.Time, err error) // goes on with another credential
	Refuse func(error)                                                               // answers a handshake with what is wrong with it
	Holder *budget.Holder                                                            // of the memory that the connection needs
}

// WebSocket follows the log and commands over WebSocket.
func (srv *Server) WebSocket(w http.ResponseWriter, r *http.Request, p Peer) error {
	if offers := websocket.Subprotocols(r); len(offers) > 0 && !slices.Contains(offers, Subprotocol) {
		return workflow.Errorf(workflow.InvalidRequest, "the WebSocket subprotocol is %s", Subprotocol)
	}
	if err := p.Holder.Take(r.Context(), budget.Stream); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	x := &stream{end: func() { cancel(goingAway) }, reads: true}
	if err := srv.add(x); err != nil {
		return err
	}
	defer srv.remove(x)

	ws, err := upgrader(p.Refuse).Upgrade(w, r, w.Header())
	if err != nil {
		return nil // it was answered
	}
	socket := ws.NetConn()
	srv.arm(x, func() { _ = socket.Close() })
	c := &conn{
		server: srv, peer: p, ws: ws, cancel: cancel,
		out: make(chan outgoing), tasks: map[string]*task{},
	}
	c.serve(ctx, &writer{
		socket: socket, out: c.out, cancel: c.cancel, written: map[*pump]int64{},
		timeout: c.server.config.WriteTimeout, ping: c.server.config.PingEvery,
	})
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
