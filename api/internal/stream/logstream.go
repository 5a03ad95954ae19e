package stream

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/pawlhq/pawl/internal/pause"
	"github.com/pawlhq/pawl/transitions"
)

// Log answers with the log as an endless stream of server-sent events.
func (srv *Server) Log(w http.ResponseWriter, r *http.Request, tenant string, start Start, f transitions.EventFilter) error {
	begin, err := srv.from(r.Context(), tenant, start)
	if err != nil {
		return err
	}
	return srv.serveSSE(w, r, true, func(ctx context.Context, s *sse) error {
		t := srv.newTail(tenant, begin)
		defer t.close()
		return srv.streamLog(ctx, s, t, selection{f}, begin.after)
	})
}

// streamLog writes until the context ends (no error), the caller is gone or too
// slow (no error), or the log cannot be read. Everything up to written was
// written before.
func (srv *Server) streamLog(ctx context.Context, s *sse, t *tail, selected selection, written int64) error {
	var buf []byte
	for ctx.Err() == nil {
		quiet, cancel := context.WithTimeout(ctx, srv.config.CommentEvery)
		b, err := t.next(quiet)
		cancel()
		buf = buf[:0]
		switch {
		case err == nil && t.fellBehind(b, srv.config.MaxLag):
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
			if !pause.For(ctx, srv.streams.pace(srv.config.WritesPerSecond)) {
				return nil
			}
		}
	}
	return nil
}
