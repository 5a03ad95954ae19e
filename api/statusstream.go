package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// statusStream answers with a command's statuses as server-sent events, up to
// the final one. A client that has seen that one, and so connects again after
// the end, is told to stay away (204).
func (a *API) statusStream(w http.ResponseWriter, r *request, ref transitions.Ref) error {
	seen, err := lastRevision(r.with(headerLastEventID))
	if err != nil {
		return err
	}
	record, err := a.engine.Command(r.Context(), ref.Tenant, ref.Scope, ref.Key)
	if err != nil {
		return err
	}
	if !record.InFlight() && record.Revision == seen {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	return a.serveSSE(w, r.Request, false, func(ctx context.Context, s *sse) error {
		return a.streamStatus(ctx, s, ref, record, seen)
	})
}

// streamStatus writes a record, unless the caller has seen it, and what becomes
// of it. It returns at the end of the command, when the context ends or the
// caller is gone (no error), or when the command cannot be read.
func (a *API) streamStatus(ctx context.Context, s *sse, ref transitions.Ref, record transitions.Record, seen int) error {
	x := a.newWatch(ref, record.Revision)
	defer x.close()
	var buf []byte
	var err error
	if record.Revision != seen {
		if buf, err = statusEvent(&record); err != nil {
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
		quiet, cancel := context.WithTimeout(ctx, a.cfg.Stream.CommentEvery)
		next, err := x.next(quiet)
		cancel()
		switch {
		case err == nil:
			record = next
			if buf, err = statusEvent(&record); err != nil {
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

// lastRevision is the id of the last event that the caller has, -1 for none.
func lastRevision(r *http.Request) (int, error) {
	id, err := single(r, headerLastEventID)
	if err != nil || id == "" {
		return -1, err
	}
	n, err := strconv.ParseUint(id, 10, 31)
	if err != nil || strconv.FormatUint(n, 10) != id {
		return 0, workflow.Errorf(workflow.InvalidRequest, "Last-Event-ID is not the id of a status")
	}
	return int(n), nil
}

func statusEvent(r *transitions.Record) ([]byte, error) {
	body, err := render(statusOf(r))
	if err != nil {
		return nil, err
	}
	return appendStatus(nil, body, r.Revision), nil
}
