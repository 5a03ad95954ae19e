package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/pawlhq/pawl/internal/pause"
	"github.com/pawlhq/pawl/workflow"
)

// eventStream answers with the log as an endless stream of server-sent events.
func (a *API) eventStream(w http.ResponseWriter, r *request, selected selection) error {
	start := r.start("after")
	id, err := single(r.with(headerLastEventID), headerLastEventID)
	if err != nil {
		return err
	}
	if id != "" {
		var ok bool
		if start, ok = parseStart(id); !ok || start.now {
			return workflow.Errorf(workflow.InvalidRequest, "Last-Event-ID is not a position")
		}
	}
	begin, err := a.from(r.Context(), r.tenant(), start)
	if err != nil {
		return err
	}
	return a.serveSSE(w, r.Request, true, func(ctx context.Context, s *sse) error {
		t := a.newTail(r.tenant(), begin)
		defer t.close()
		return a.streamLog(ctx, s, t, selected, begin.after)
	})
}

// streamLog writes until the context ends (no error), the caller is gone or too
// slow (no error), or the log cannot be read. Everything up to written was
// written before.
func (a *API) streamLog(ctx context.Context, s *sse, t *tail, selected selection, written int64) error {
	var buf []byte
	for ctx.Err() == nil {
		quiet, cancel := context.WithTimeout(ctx, a.cfg.Stream.CommentEvery)
		b, err := t.next(quiet)
		cancel()
		buf = buf[:0]
		switch {
		case err == nil && t.fellBehind(b, a.cfg.Stream.MaxLag):
			_ = s.flush([]byte(": too slow, resume after " + strconv.FormatInt(written, 10) + "\n\n"))
			return nil
		case err == nil:
			for e, more := range selected.from(b.Events) {
				buf = appendServerSent(buf, e.CloudEvent, e.Position, more)
			}
			written = b.Last
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, context.DeadlineExceeded):
			buf = appendComment(buf, written)
		default:
			return err
		}
		if len(buf) > 0 {
			if err := s.flush(buf); err != nil {
				return nil
			}
		}
		if t.caughtUp() {
			if !pause.For(ctx, a.streams.pace(a.cfg.Stream.WritesPerSecond)) {
				return nil
			}
		}
	}
	return nil
}
