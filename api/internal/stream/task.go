package stream

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/pawlhq/pawl/api/internal/budget"
	"github.com/pawlhq/pawl/internal/kernel/backoff"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// task is what a connection does under an id: a subscription or a watch. The
// reader starts it and waits for its end.
type task struct {
	ask    Ask   // what the client has asked for
	pump   *pump // of a subscription, nil of a watch
	cancel context.CancelFunc
	done   chan struct{}
	last   atomic.Bool // the last thing that it has for the writer is on its way
}

// begin runs a task until it returns, the context ends or stop is called. An error of run ends the connection; nil ends only the task.
func (c *conn) begin(ctx context.Context, m message, p *pump, run func(context.Context, *task) *closing) {
	t := &task{ask: m.ask(c.peer.Tenant), pump: p, done: make(chan struct{})}
	ctx, t.cancel = context.WithCancel(ctx)
	c.tasks[m.id] = t
	go func() {
		defer close(t.done)
		defer c.peer.Holder.Free(budget.Follow)
		if why := run(ctx, t); why != nil {
			c.cancel(why)
		}
	}()
}

// stop returns when the task hands nothing to the writer any more.
func (t *task) stop() {
	t.cancel()
	<-t.done
}

// room holds memory for a task. It refuses an id that is taken, and more tasks than a connection may have.
func (c *conn) room(id string) error {
	if c.tasks[id] != nil {
		return workflow.Errorf(workflow.InvalidRequest, "subscription %q exists; unsubscribe it first", id)
	}
	if limit := c.server.config.Subscriptions; len(c.tasks) >= limit {
		return workflow.Errorf(workflow.InvalidRequest, "the connection has %d subscriptions already; open another one", limit)
	}
	return c.peer.Holder.TryTake(budget.Follow)
}

// subscribe follows the log.
func (c *conn) subscribe(ctx context.Context, m message) error {
	if err := c.server.Check(&m.selected.EventFilter); err != nil {
		return err
	}
	begin, err := c.server.from(ctx, c.peer.Tenant, m.after)
	if err == nil {
		err = c.room(m.id)
	}
	if err != nil {
		return err
	}
	p := newPump(m)
	c.send(ctx, outgoing{
		frame: answerFrame("subscribed", m.id, "after", begin.after),
		pump:  p, batch: transitions.Batch{Last: begin.after}, caughtUp: begin.after == begin.head,
	})
	c.begin(ctx, m, p, func(ctx context.Context, _ *task) *closing {
		t := c.server.newTail(c.peer.Tenant, begin, c.peer.Holder)
		defer t.close()
		return p.run(ctx, c.server, t, c.out)
	})
	return nil
}

// watch follows a command.
func (c *conn) watch(ctx context.Context, m message) error {
	if err := c.room(m.id); err != nil {
		return err
	}
	c.begin(ctx, m, nil, func(ctx context.Context, t *task) *closing {
		w := c.server.newWatch(transitions.Ref{Tenant: c.peer.Tenant, Scope: m.scope, Key: m.key}, -1)
		defer w.close()
		return c.tell(ctx, t, m.id, w)
	})
	return nil
}

// tell hands the statuses of a command to the writer, up to the final one.
func (c *conn) tell(ctx context.Context, t *task, id string, w *watch) *closing {
	for {
		record, err := w.next(ctx)
		if ctx.Err() != nil {
			return nil
		}
		var body []byte
		if err == nil {
			body, err = c.server.status(&record)
		}
		if err != nil {
			err = c.server.judge(ctx, err)
			if code := workflow.CodeOf(err); code != workflow.CommandNotFound && code != workflow.KeyExpired {
				return closingOf(err)
			}
			t.last.Store(true)
			c.send(ctx, outgoing{frame: errorFrame(id, transitions.ProblemOf(err))})
			return nil
		}
		final := !record.InFlight() // which ends the watch
		t.last.Store(final)
		b := appendMember([]byte(`{"op":"status","id":`), id)
		if final {
			b = append(b, `,"final":true`...)
		}
		b = append(append(b, `,"command":`...), body...)
		c.send(ctx, outgoing{frame: appendFrame(nil, frameText, append(b, '}'))})
		if final {
			return nil
		}
	}
}

func (c *conn) unsubscribe(ctx context.Context, id string) error {
	t := c.tasks[id]
	if t == nil {
		return workflow.Errorf(workflow.InvalidRequest, "subscription %q does not exist", id)
	}
	t.stop()
	delete(c.tasks, id)
	c.send(ctx, outgoing{frame: endFrame(id), pump: t.pump, ended: true})
	return nil
}

// authenticate replaces the credential of the connection. Subscriptions that the new credential does not cover end, with a message that
// gives the reason.
func (c *conn) authenticate(ctx context.Context, m message) error {
	until, err := c.peer.Renew(ctx, m.credential)
	if err != nil {
		return err
	}
	b := appendMember([]byte(`{"op":"authenticated","id":`), m.id)
	if !until.IsZero() {
		b = appendMember(append(b, `,"until":`...), until.Format(time.RFC3339Nano))
	}
	c.send(ctx, outgoing{frame: appendFrame(nil, frameText, append(b, '}'))})
	for id, t := range c.tasks {
		if err := c.peer.May(ctx, t.ask); err != nil && ctx.Err() == nil {
			c.tellError(ctx, id, err)
			if err := c.unsubscribe(ctx, id); err != nil {
				return err
			}
		}
	}
	return nil
}

// pump moves the log from the engine to the writer for one subscription.
type pump struct {
	id       string
	head     []byte // how its event messages begin
	selected selection
}

// outgoing is something for the writer.
type outgoing struct {
	frame    []byte // a whole frame, written first
	pump     *pump  // whose the rest is, nil for none
	batch    transitions.Batch
	caughtUp bool // the batch reaches the head for the first time
	ended    bool // the pump has stopped
}

func newPump(m message) *pump { return &pump{id: m.id, head: eventHead(m.id), selected: m.selected} }

// run returns why the connection must end, nil when only the pump has to.
func (p *pump) run(ctx context.Context, srv *Server, t *tail, out chan<- outgoing) *closing {
	for {
		caughtUp := t.caughtUp()
		b, err := t.next(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return closingOf(srv.judge(ctx, err))
		case t.fellBehind(b, srv.config.MaxLag):
			return tooSlow
		}
		select {
		case out <- outgoing{pump: p, batch: b, caughtUp: t.caughtUp() && !caughtUp}:
		case <-ctx.Done():
			return nil
		}
		if !t.caughtUp() {
			continue
		}
		// What comes in meanwhile is written together.
		if !backoff.Sleep(ctx, srv.pace(srv.config.WritesPerSecond)) {
			return nil
		}
	}
}
