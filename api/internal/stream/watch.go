package stream

import (
	"context"
	"time"

	"github.com/pawlhq/pawl/transitions"
)

// watch follows a command for one reader, through interruptions of the database.
// It is for one goroutine.
type watch struct {
	server  *Server
	ref     transitions.Ref
	watcher transitions.Watcher
	seen    int // the revision that the reader has, -1 for none
}

func (srv *Server) newWatch(ref transitions.Ref, seen int) *watch {
	return &watch{server: srv, ref: ref, watcher: srv.engine.Watch(ref.Tenant, ref.Scope, ref.Key), seen: seen}
}

func (w *watch) close() { w.watcher.Close() }

// next returns the command when the reader has not seen it as it stands. It must
// not be called again after the end of the command. Its error is the context's,
// or an *workflow.Error.
func (w *watch) next(ctx context.Context) (transitions.Record, error) {
	for {
		record, err := persistently(ctx, w.server.log, func() (transitions.Record, error) { return w.watcher.Next(ctx) }, func() {
			w.watcher.Close()
			w.watcher = w.server.engine.Watch(w.ref.Tenant, w.ref.Scope, w.ref.Key)
		})
		if err != nil {
			return record, err
		}
		if record.Revision != w.seen || !record.InFlight() {
			w.seen = record.Revision
			return record, nil
		}
	}
}

// Changed returns a command in flight, of which the caller knows the revision of the
// record, when it has changed, or the time is over, or the node stops. It reports
// whether it waited: not on a node that stops.
func (srv *Server) Changed(ctx context.Context, ref transitions.Ref, record transitions.Record,
	wait time.Duration) (transitions.Record, bool, error) {
	limited, done, err := srv.Wait(ctx, wait)
	if err != nil {
		return record, false, err
	}
	defer done()
	x := srv.newWatch(ref, record.Revision)
	defer x.close()
	next, err := x.next(limited)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return record, true, nil
	}
	return next, true, err
}
