package hints

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/internal/kernel/pause"
)

// send tells others, at most once in a gap, of all that has happened since.
func (x *Exchange) send() {
	for {
		select {
		case <-x.some:
		case <-x.ctx.Done():
			return
		}
		x.tell()
		if !pause.For(x.ctx, gap) {
			return
		}
	}
}

// tell sends what there is, in one statement. What cannot be sent is lost.
func (x *Exchange) tell() {
	payloads := x.take().payloads(x.node)
	if len(payloads) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), budget) // Stop waits for it
	defer cancel()
	_, err := x.config.Pool.Exec(ctx, "SELECT pg_notify($1, p) FROM unnest($2::text[]) AS p", x.config.Channel, payloads)
	if err != nil {
		x.config.Log.Warn("cannot send hints to other nodes; they will find out by polling", "error", err)
	}
}

// listen hears other nodes, over a connection of its own, which it opens again
// when it is lost.
func (x *Exchange) listen(l Listener) {
	for wait := time.Duration(0); pause.For(x.ctx, wait); wait = min(2*wait+100*time.Millisecond, 5*time.Second) {
		begun := time.Now()
		err := x.hear(l)
		if x.ctx.Err() != nil {
			return
		}
		x.config.Log.Warn("cannot hear other nodes' hints; polling instead", "error", err)
		if time.Since(begun) > time.Minute {
			wait = 0
		}
	}
}

func (x *Exchange) hear(l Listener) error {
	conn, err := x.config.Connect(x.ctx, "pawl listener")
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		_ = conn.Close(ctx) // it is given up
	}()
	if _, err := conn.Exec(x.ctx, "LISTEN "+pgx.Identifier{x.config.Channel}.Sanitize()); err != nil {
		return err
	}
	for {
		heard, err := conn.WaitForNotification(x.ctx)
		if err != nil {
			return err
		}
		if h, ok := parse(heard.Payload); ok && h.node != x.node {
			h.pass(l)
		}
	}
}
