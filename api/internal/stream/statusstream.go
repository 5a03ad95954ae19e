package stream

import (
	"context"
	"errors"
	"net/http"

	"github.com/pawlhq/pawl/transitions"
)

// Status answers with a command's statuses as server-sent events, up to the final
// one. A client that has seen that one, and so connects again after the end, is told
// to stay away (204). Seen is the revision that it has, -1 for none.
func (srv *Server) Status(w http.ResponseWriter, r *http.Request, ref transitions.Ref, seen int) error {
	record, err := srv.engine.Command(r.Context(), ref.Tenant, ref.Scope, ref.Key)
	if err != nil {
		return err
	}
	if !record.InFlight() && record.Revision == seen {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	return srv.serveSSE(w, r, false, func(ctx context.Context, s *sse) error {
		return srv.streamStatus(ctx, s, ref, record, seen)
	})
}

// streamStatus writes a record, unless the caller has seen it, and what becomes
// of it. It returns at the end of the command, when the context ends or the
// caller is gone (no error), or when the command cannot be read.
func (srv *Server) streamStatus(ctx context.Context, s *sse, ref transitions.Ref, record transitions.Record, seen int) error {
	x := srv.newWatch(ref, record.Revision)
	defer x.close()
	var buf []byte
	var err error
	if record.Revision != seen {
		if buf, err = srv.statusEvent(&record); err != nil {
			return err
		}
	}
	for {
		if len(buf) > 0 {
			if err := s.flush(buf); err != nil {
				return nil
			}
		}
		if !record.InFlight() {
			return nil
		}
		quiet, cancel := context.WithTimeout(ctx, srv.config.CommentEvery)
		next, err := x.next(quiet)
		cancel()
		switch {
		case err == nil:
			record = next
			if buf, err = srv.statusEvent(&record); err != nil {
				return err
			}
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, context.DeadlineExceeded):
			buf = []byte(emptyComment)
		default:
			return err
		}
	}
}

func (srv *Server) statusEvent(r *transitions.Record) ([]byte, error) {
	body, err := srv.status(r)
	if err != nil {
		return nil, err
	}
	return appendStatus(nil, body, r.Revision), nil
}
