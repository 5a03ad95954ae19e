package stream

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/pawlhq/pawl/api/internal/budget"
	"github.com/pawlhq/pawl/internal/kernel/backoff"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// MediaType is that of server-sent events.
const MediaType = "text/event-stream"

// sse writes an event stream, in the form of the HTML standard, section 9.2.
type sse struct {
	w       http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration // of one write
}

// serveSSE answers with an event stream that run writes, until run returns. Its context ends when the caller disconnects or the node stops.
// An error of run can no longer be answered, and is logged.
func (srv *Server) serveSSE(w http.ResponseWriter, r *http.Request, readsLog bool, run func(context.Context, *sse) error) error {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	s := &sse{w: w, control: http.NewResponseController(w), timeout: srv.config.WriteTimeout}
	x := &stream{end: cancel, cut: func() { _ = s.control.SetWriteDeadline(time.Now()) }, reads: readsLog}
	if err := srv.add(x); err != nil {
		return err
	}
	defer srv.remove(x)
	if err := s.begin(); err != nil {
		return nil // the caller is gone
	}
	if err := run(ctx, s); err != nil {
		_ = srv.judge(ctx, err)
	}
	return nil
}

func (s *sse) begin() error {
	h := s.w.Header()
	h.Set("Content-Type", MediaType)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // some proxies would hold the stream back
	s.w.WriteHeader(http.StatusOK)
	return s.flush([]byte("retry: 1000\n\n"))
}

func (s *sse) flush(b []byte) error {
	if err := s.control.SetWriteDeadline(time.Now().Add(s.timeout)); err != nil {
		return err
	}
	if _, err := s.w.Write(b); err != nil {
		return err
	}
	return s.control.Flush()
}

// end tells a caller whose credential has ended that this is why the stream does. id is
// the place to resume after, as a line.
func (s *sse) end(ctx context.Context, id []byte) {
	if context.Cause(ctx) != CredentialEnded {
		return
	}
	problem := transitions.ProblemOf(workflow.Errorf(workflow.Unauthorized, "%s; connect again with another one", ended.reason))
	_ = s.flush(appendData(append([]byte("event: unauthorized\n"), id...), problem.JSON()))
}

// appendServerSent appends an event. Its id is its position, but only on the
// last event of a transition: a reader that is cut off between two of them
// resumes before both.
func appendServerSent(b, cloudEvent []byte, position int64, more bool) []byte {
	if !more {
		b = appendID(b, position)
	}
	return appendData(b, cloudEvent)
}

// appendID appends a position as the id of what follows.
func appendID(b []byte, position int64) []byte {
	b = append(b, "id: "...)
	b = strconv.AppendInt(b, position, 10)
	return append(b, '\n')
}

// appendStatus appends a command's status. Its id is the revision.
func appendStatus(b, status []byte, revision int) []byte {
	b = append(b, "event: status\nid: "...)
	b = strconv.AppendInt(b, int64(revision), 10)
	return appendData(append(b, '\n'), status)
}

// appendData appends the data of an event, and its end.
func appendData(b, text []byte) []byte {
	for len(text) > 0 {
		line := text
		if i := bytes.IndexAny(text, "\r\n"); i >= 0 { // white space in JSON, the end of a field here
			line, text = text[:i], text[i+1:]
		} else {
			text = nil
		}
		b = append(b, "data: "...)
		b = append(b, line...)
		b = append(b, '\n')
	}
	return append(b, '\n')
}

// emptyComment keeps a stream alive.
const emptyComment = ":\n\n"

// appendComment appends what keeps the log's stream alive: a comment, and the
// position, so that a reader whose filter leaves everything out does not resume
// from long ago.
func appendComment(b []byte, position int64) []byte {
	b = append(b, ":\nid: "...)
	b = strconv.AppendInt(b, position, 10)
	return append(b, "\n\n"...)
}

// Log answers with the log as an endless stream of server-sent events.
func (srv *Server) Log(w http.ResponseWriter, r *http.Request, tenant string, start Start, f transitions.EventFilter,
	holder *budget.Holder,
) error {
	if err := holder.Take(r.Context(), budget.Stream); err != nil {
		return err
	}
	begin, err := srv.from(r.Context(), tenant, start)
	if err != nil {
		return err
	}
	return srv.serveSSE(w, r, true, func(ctx context.Context, s *sse) error {
		t := srv.newTail(tenant, begin, holder)
		defer t.close()
		return srv.streamLog(ctx, s, t, selection{f}, begin.after)
	})
}

// streamLog writes until the context ends (no error), the caller is gone or too
// slow (no error), or the log cannot be read. Everything up to written was
// written before.
func (srv *Server) streamLog(ctx context.Context, s *sse, t *tail, selected selection, written int64) error {
	defer func() { s.end(ctx, appendID(nil, written)) }()
	var buf []byte
	for ctx.Err() == nil {
		quiet, cancel := context.WithTimeout(ctx, srv.config.CommentEvery)
		b, err := t.next(quiet)
		cancel()
		if buf = buf[:0]; cap(buf) > 2*chunk {
			buf = nil // one with a huge event in it is not kept
		}
		switch {
		case err == nil && t.fellBehind(b, srv.config.MaxLag):
			_ = s.flush([]byte(": too slow, resume after " + strconv.FormatInt(written, 10) + "\n\n"))
			return nil
		case err == nil:
			for e, more := range selected.from(b.Events) {
				if len(buf) > 0 && len(buf)+len(e.CloudEvent) > chunk {
					if s.flush(buf) != nil {
						return nil
					}
					buf, written = buf[:0], e.Position-1
				}
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
		if len(buf) > 0 && s.flush(buf) != nil || t.caughtUp() && !backoff.Sleep(ctx, srv.pace(srv.config.WritesPerSecond)) {
			return nil
		}
	}
	return nil
}

// Status answers with a command's statuses as server-sent events, up to the final
// one. A client that has seen that one, and so connects again after the end, is told
// to stay away (204). Seen is the revision that it has, -1 for none.
func (srv *Server) Status(w http.ResponseWriter, r *http.Request, ref transitions.Ref, seen int, holder *budget.Holder) error {
	if err := holder.Take(r.Context(), budget.Stream); err != nil {
		return err
	}
	record, err := srv.engine.Read().Command(r.Context(), ref)
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
	defer s.end(ctx, nil)
	x := srv.newWatch(ref, record.Revision)
	defer x.close()
	known := record.Revision == seen
	for {
		if !known {
			body, err := srv.status(&record)
			if err != nil {
				return err
			}
			if s.flush(appendStatus(nil, body, record.Revision)) != nil {
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
			record, known = next, false
		case ctx.Err() != nil:
			return nil
		case !errors.Is(err, context.DeadlineExceeded):
			return err
		default:
			if known = true; s.flush([]byte(emptyComment)) != nil {
				return nil
			}
		}
	}
}
