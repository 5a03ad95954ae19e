package stream

import (
	"context"
	"io"
	"time"

	"github.com/gorilla/websocket"

	"github.com/pawlhq/pawl/transitions"
)

// conn is a WebSocket connection as its reader sees it. Only the reader's
// goroutine touches it.
type conn struct {
	server *Server
	peer   Peer
	ws     *websocket.Conn         // for reading only
	cancel context.CancelCauseFunc // ends the connection; the cause is a *closing
	out    chan outgoing           // to the writer
	tasks  map[string]*task        // by the id that the client gave
}

// serve runs the connection until it has ended, and all of its goroutines with
// it.
func (c *conn) serve(ctx context.Context, w *writer) {
	written := make(chan struct{})
	go func() {
		defer close(written)
		w.run(ctx)
	}()
	c.read(ctx)
	c.cancel(gone)
	for _, t := range c.tasks {
		t.stop()
	}
	<-written
	w.hangUp()
}

// read handles messages until the socket ends. Once the connection is closing,
// it reads on for the peer's close frame; the writer bounds how long.
func (c *conn) read(ctx context.Context) {
	c.ws.SetPingHandler(func(data string) error {
		c.send(ctx, outgoing{frame: appendFrame(nil, framePong, []byte(data))})
		return c.alive()
	})
	c.ws.SetPongHandler(func(string) error { return c.alive() })
	c.ws.SetCloseHandler(func(code int, _ string) error {
		c.cancel(&closing{code: code})
		return nil
	})
	for {
		if err := c.alive(); err != nil {
			return
		}
		kind, in, err := c.ws.NextReader()
		if err != nil {
			return
		}
		if ctx.Err() != nil {
			continue
		}
		limit := c.server.config.MessageSize
		text, err := io.ReadAll(io.LimitReader(in, limit+1))
		switch {
		case err != nil:
			return
		case int64(len(text)) > limit:
			c.cancel(&closing{code: websocket.CloseMessageTooBig, reason: "the message is too large"})
		case kind != websocket.TextMessage:
			c.cancel(badMessage("messages are text"))
		default:
			c.handle(ctx, text)
		}
	}
}

// alive gives the peer time until it must be heard of again.
func (c *conn) alive() error {
	return c.ws.SetReadDeadline(time.Now().Add(3 * c.server.config.PingEvery))
}

// send hands something to the writer, unless the connection is closing.
func (c *conn) send(ctx context.Context, m outgoing) {
	select {
	case c.out <- m:
	case <-ctx.Done():
	}
}

func (c *conn) handle(ctx context.Context, text []byte) {
	m, err := parseMessage(text)
	if err != nil {
		c.cancel(badMessage(err.Error()))
		return
	}
	// Remove finished tasks. A client may reuse the id of a task whose last message it has, so wait for one that is just sending it.
	for id, t := range c.tasks {
		if t.last.Load() {
			<-t.done
			t.cancel()
			delete(c.tasks, id)
		}
	}
	if err = c.peer.May(ctx, m.ask(c.peer.Tenant)); err == nil {
		err = c.do(ctx, m)
	}
	if err != nil && ctx.Err() == nil {
		c.tellError(ctx, m.id, err)
	}
}

// tellError says what cannot be.
func (c *conn) tellError(ctx context.Context, id string, err error) {
	c.send(ctx, outgoing{frame: errorFrame(id, transitions.ProblemOf(c.server.judge(ctx, err)))})
}

func (c *conn) do(ctx context.Context, m message) error {
	switch m.op {
	case Subscribe:
		return c.subscribe(ctx, m)
	case Watch:
		return c.watch(ctx, m)
	case Authenticate:
		return c.authenticate(ctx, m)
	default:
		return c.unsubscribe(ctx, m.id)
	}
}
