package api

import (
	"context"
	"net/http"

	"github.com/pawlhq/pawl/transitions"
)

// watch follows a command for one reader, through interruptions of the database.
// It is for one goroutine.
type watch struct {
	api     *API
	ref     transitions.Ref
	watcher transitions.Watcher
	seen    int // the revision that the reader has, -1 for none
}

func (a *API) newWatch(ref transitions.Ref, seen int) *watch {
	return &watch{api: a, ref: ref, watcher: a.engine.Watch(ref.Tenant, ref.Scope, ref.Key), seen: seen}
}

func (w *watch) close() { w.watcher.Close() }

// next returns the command when the reader has not seen it as it stands. It must
// not be called again after the end of the command. Its error is the context's,
// or an *workflow.Error.
func (w *watch) next(ctx context.Context) (transitions.Record, error) {
	for {
		record, err := persistently(ctx, w.api.log, func() (transitions.Record, error) { return w.watcher.Next(ctx) }, func() {
			w.watcher.Close()
			w.watcher = w.api.engine.Watch(w.ref.Tenant, w.ref.Scope, w.ref.Key)
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

// changedStatus returns a command as it stands. A caller who knows that already
// and prefers to wait gets it when it has changed, or the time is over, or the
// node stops.
func (a *API) changedStatus(w http.ResponseWriter, r *request, ref transitions.Ref) (transitions.Record, error) {
	record, err := a.engine.Command(r.Context(), ref.Tenant, ref.Scope, ref.Key)
	wait := preferredWait(r.with(headerPrefer))
	if err != nil || wait == 0 || !record.InFlight() || !notModified(r.Request, statusTag(&record)) {
		return record, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), wait)
	defer cancel()
	s := &stream{end: cancel}
	if err := a.streams.add(s); err != nil {
		return record, err
	}
	defer a.streams.remove(s)
	w.Header().Set(headerApplied, "wait")
	x := a.newWatch(ref, record.Revision)
	defer x.close()
	next, err := x.next(ctx)
	if err != nil && ctx.Err() != nil && r.Context().Err() == nil {
		return record, nil
	}
	return next, err
}
