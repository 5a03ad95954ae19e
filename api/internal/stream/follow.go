package stream

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"time"

	"github.com/pawlhq/pawl/api/internal/budget"
	"github.com/pawlhq/pawl/internal/kernel/backoff"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// span is where a reader of the log begins, and how far the log went then.
type span struct {
	after int64
	head  int64
}

// tail reads a tenant's log for one reader, through interruptions of the
// database. It is for one goroutine.
type tail struct {
	server   *Server
	tenant   string
	follower transitions.Follower
	last     int64 // everything up to here was returned
	before   int64 // last as it was before the newest batch
	head     int64 // of the log when the reader came
	near     bool  // it was near the head once

	holder *budget.Holder // of the memory for what next returns; nil where the caller holds it
	held   int64
}

func (srv *Server) newTail(tenant string, s span, holder *budget.Holder) *tail {
	return &tail{server: srv, tenant: tenant, follower: srv.engine.Read().Follow(tenant, s.after), holder: holder,
		last: s.after, before: s.after, head: s.head, near: s.after == s.head}
}

func (t *tail) close() {
	t.free()
	t.follower.Close()
}

// hold waits for memory for what the reader is given next.
func (t *tail) hold(ctx context.Context, bytes int64) error {
	if t.holder == nil {
		return nil
	}
	err := t.holder.Await(ctx, bytes)
	if err == nil {
		t.held += bytes
	}
	return err
}

func (t *tail) free() {
	if t.held > 0 {
		t.holder.Free(t.held)
		t.held = 0
	}
}

// caughtUp reports whether everything was returned that the log had when the
// reader came. Until then next does not wait.
func (t *tail) caughtUp() bool { return t.last >= t.head }

// next waits for the next batch and returns it. While the database is unreachable it waits and then continues at the same position. Its
// error is the context's, or an *workflow.Error. The previous batch must not be used after the call.
//
// A reader that catches up has its own batch in memory. Near the last position all readers share one batch, and each copies only the chunk
// that it writes, which is at least one event.
func (t *tail) next(ctx context.Context) (transitions.Batch, error) {
	t.free()
	if !t.caughtUp() {
		if err := t.hold(ctx, budget.Page); err != nil {
			return transitions.Batch{}, err
		}
	}
	b, err := persistently(ctx, t.server.log, func() (transitions.Batch, error) { return t.follower.Next(ctx) }, func() {
		t.follower.Close()
		t.follower = t.server.engine.Read().Follow(t.tenant, t.last)
	})
	if err != nil {
		return b, err
	}
	t.before, t.last = t.last, b.Last
	if largest := largestOf(b.Events); t.held == 0 && largest > chunk {
		err = t.hold(ctx, 2*int64(largest))
	}
	return b, err
}

// largestOf is how many bytes the largest of the events has.
func largestOf(events []transitions.Logged) (largest int) {
	for i := range events {
		largest = max(largest, len(events[i].CloudEvent))
	}
	return largest
}

// fellBehind reports whether the reader came for this batch too late: more than
// limit transitions were waiting for it. One that is catching up has a right to
// be far behind; once it was near the head, it has to keep up.
func (t *tail) fellBehind(b transitions.Batch, limit int64) bool {
	if t.near && b.Head-t.before > limit {
		return true
	}
	t.near = t.near || t.caughtUp() && b.Head-t.last <= limit
	return false
}

// Start is where a reader of the log begins: after a position, before the
// oldest event that is there, or after the newest.
type Start struct {
	oldest, now bool
	position    int64 // 0 is before the first event that there ever was
}

// ParseStart reads "start", "now" or a position, and reports whether it is one
// of them.
func ParseStart(s string) (Start, bool) {
	switch s {
	case "start":
		return Start{oldest: true}, true
	case "now":
		return Start{now: true}, true
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return Start{position: n}, err == nil && n >= 0 && strconv.FormatInt(n, 10) == s
}

// from returns the start of a reader. It refuses a position beyond the end of the log, because such a reader has mistaken this log for
// another and would miss everything up to there, and a position after which events were removed, except the oldest existing one.
func (srv *Server) from(ctx context.Context, tenant string, p Start) (span, error) {
	head, err := srv.engine.Read().Head(ctx, tenant)
	switch {
	case err != nil:
		return span{}, err
	case p.now:
		return span{after: head, head: head}, nil
	case p.position > head:
		return span{}, workflow.Errorf(workflow.InvalidRequest, "the log ends at position %d, before %d", head, p.position)
	}
	err = srv.engine.Read().Readable(ctx, tenant, p.position)
	if e, ok := errors.AsType[*workflow.Error](err); p.oldest && ok && e.Code == workflow.EventsGone {
		p.position, err = e.Position-1, nil
	}
	if err != nil {
		return span{}, err
	}
	return span{after: p.position, head: max(head, p.position)}, nil
}

// watch follows a command for one reader, through interruptions of the database.
// It is for one goroutine.
type watch struct {
	server  *Server
	ref     transitions.Ref
	watcher transitions.Watcher
	seen    int // the revision that the reader has, -1 for none
}

func (srv *Server) newWatch(ref transitions.Ref, seen int) *watch {
	return &watch{server: srv, ref: ref, watcher: srv.engine.Read().Watch(ref), seen: seen}
}

func (w *watch) close() { w.watcher.Close() }

// next returns the command when the reader has not seen it as it stands. It must
// not be called again after the end of the command. Its error is the context's,
// or an *workflow.Error.
func (w *watch) next(ctx context.Context) (transitions.Record, error) {
	for {
		record, err := persistently(ctx, w.server.log, func() (transitions.Record, error) { return w.watcher.Next(ctx) }, func() {
			w.watcher.Close()
			w.watcher = w.server.engine.Read().Watch(w.ref)
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

// databaseRetry is the delay of a reader while the database cannot be reached.
var databaseRetry = workflow.Retry{First: 250 * time.Millisecond, Max: 5 * time.Second}

// persistently asks for what comes next. While the database cannot be reached,
// it waits, renews the reader and asks again. Its error is the context's, or an
// *workflow.Error.
func persistently[T any](ctx context.Context, log *slog.Logger, next func() (T, error), renew func()) (T, error) {
	for failures := 1; ; failures++ {
		got, err := next()
		if err == nil {
			return got, nil
		}
		if ctx.Err() != nil {
			return got, ctx.Err()
		}
		if workflow.CodeOf(err) != workflow.Unavailable {
			return got, err
		}
		log.DebugContext(ctx, "stream: a reader waits for the database", "error", err)
		if !backoff.Wait(ctx, databaseRetry, failures) {
			return got, ctx.Err()
		}
		renew()
	}
}
