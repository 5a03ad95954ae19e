package api

import (
	"context"
	"io"
	"time"

	"github.com/gorilla/websocket"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// conn is a WebSocket connection as its reader sees it. Only the reader's
// goroutine touches it.
type conn struct {
	api    *API
	tenant string
	ws     *websocket.Conn         // for reading only
	cancel context.CancelCauseFunc // ends the connection; the cause is a *closing
	out    chan outgoing           // to the writer
	pumps  map[string]*pump        // by subscription
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
	for _, p := range c.pumps {
		p.stop()
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
		limit := c.api.cfg.Stream.MessageSize
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
	return c.ws.SetReadDeadline(time.Now().Add(3 * c.api.cfg.Stream.PingEvery))
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
	if m.op == opSubscribe {
		err = c.subscribe(ctx, m)
	} else {
		err = c.unsubscribe(ctx, m.id)
	}
	if err != nil && ctx.Err() == nil {
		c.send(ctx, outgoing{frame: errorFrame(m.id, transitions.ProblemOf(c.api.judged(ctx, err)))})
	}
}

func (c *conn) subscribe(ctx context.Context, m message) error {
	if c.pumps[m.id] != nil {
		return workflow.Errorf(workflow.InvalidRequest, "subscription %q exists; unsubscribe it first", m.id)
	}
	if limit := c.api.cfg.Stream.Subscriptions; len(c.pumps) >= limit {
		return workflow.Errorf(workflow.InvalidRequest, "the connection has %d subscriptions already; open another one", limit)
	}
	begin, err := c.api.from(ctx, c.tenant, m.after)
	if err != nil {
		return err
	}
	p := newPump(m)
	c.send(ctx, outgoing{
		frame: answerFrame("subscribed", m.id, "after", begin.after),
		pump:  p, batch: transitions.Batch{Last: begin.after}, caughtUp: begin.after == begin.head,
	})
	c.pumps[m.id] = p
	p.start(ctx, c, begin)
	return nil
}

func (c *conn) unsubscribe(ctx context.Context, id string) error {
	p := c.pumps[id]
	if p == nil {
		return workflow.Errorf(workflow.InvalidRequest, "there is no subscription %q", id)
	}
	p.stop()
	delete(c.pumps, id)
	c.send(ctx, outgoing{frame: endFrame(id), pump: p, ended: true})
	return nil
}
