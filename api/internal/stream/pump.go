package stream

import (
	"context"

	"github.com/pawlhq/pawl/internal/pause"
	"github.com/pawlhq/pawl/transitions"
)

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
		if !pause.For(ctx, srv.streams.pace(srv.config.WritesPerSecond)) {
			return nil
		}
	}
}
