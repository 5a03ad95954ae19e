package api

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/pawlhq/pawl/workflow"
)

// eventStream answers with an endless stream of server-sent events.
func (a *API) eventStream(w http.ResponseWriter, r *http.Request, c Caller, start startingPoint, selected selection) error {
	id, err := single(r, "Last-Event-ID")
	if err != nil {
		return err
	}
	if id != "" {
		var ok bool
		if start, ok = parseStart(id); !ok || start.now {
			return workflow.Errorf(workflow.InvalidRequest, "Last-Event-ID is not a position")
		}
	}
	begin, err := a.from(r.Context(), c.Tenant, start)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	control := http.NewResponseController(w)
	x := &stream{end: cancel, cut: func() { _ = control.SetWriteDeadline(time.Now()) }}
	if err := a.streams.add(x); err != nil {
		return err
	}
	defer a.streams.remove(x)

	s := &sse{api: a, w: w, control: control, selected: selected, written: begin.after}
	if err := s.begin(); err != nil {
		return nil // the caller is gone
	}
	t := a.newTail(c.Tenant, begin)
	defer t.close()
	if err := s.run(ctx, t); err != nil {
		_ = a.judged(ctx, err) // too late for an answer
	}
	return nil
}

// sse writes an event stream, in the form of the HTML standard, section 9.2.
type sse struct {
	api      *API
	w        http.ResponseWriter
	control  *http.ResponseController
	selected selection
	written  int64 // everything up to here was written or left out
	buf      []byte
}

func (s *sse) begin() error {
	h := s.w.Header()
	h.Set("Content-Type", mediaEventStream)
	h.Set("Cache-Control", "no-store")
	h.Set("Vary", "Accept")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Accel-Buffering", "no") // some proxies would hold the stream back
	s.w.WriteHeader(http.StatusOK)
	return s.flush([]byte("retry: 1000\n\n"))
}

// run writes until the context ends (no error), the caller is gone or too slow
// (no error), or the log cannot be read.
func (s *sse) run(ctx context.Context, t *tail) error {
	for ctx.Err() == nil {
		quiet, cancel := context.WithTimeout(ctx, s.api.cfg.Stream.CommentEvery)
		b, err := t.next(quiet)
		cancel()
		s.buf = s.buf[:0]
		switch {
		case err == nil && t.fellBehind(b, s.api.cfg.Stream.MaxLag):
			_ = s.flush([]byte(": too slow, resume after " + strconv.FormatInt(s.written, 10) + "\n\n"))
			return nil
		case err == nil:
			for e, more := range s.selected.from(b.Events) {
				s.buf = appendServerSent(s.buf, e.CloudEvent, e.Position, more)
			}
			s.written = b.Last
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, context.DeadlineExceeded):
			s.buf = appendComment(s.buf, s.written)
		default:
			return err
		}
		if len(s.buf) > 0 {
			if err := s.flush(s.buf); err != nil {
				return nil
			}
		}
		if t.caughtUp() {
			if err := pause(ctx, s.api.streams.pace(s.api.cfg.Stream.WritesPerSecond)); err != nil {
				return nil
			}
		}
	}
	return nil
}

func (s *sse) flush(b []byte) error {
	if err := s.control.SetWriteDeadline(time.Now().Add(s.api.cfg.Stream.WriteTimeout)); err != nil {
		return err
	}
	if _, err := s.w.Write(b); err != nil {
		return err
	}
	return s.control.Flush()
}

// appendServerSent appends an event. Its id is its position, but only on the
// last event of a transition: a reader that is cut off between two of them
// resumes before both.
func appendServerSent(b, cloudEvent []byte, position int64, more bool) []byte {
	if !more {
		b = append(b, "id: "...)
		b = strconv.AppendInt(b, position, 10)
		b = append(b, '\n')
	}
	for len(cloudEvent) > 0 {
		line := cloudEvent
		if i := bytes.IndexAny(cloudEvent, "\r\n"); i >= 0 { // white space in JSON, the end of a field here
			line, cloudEvent = cloudEvent[:i], cloudEvent[i+1:]
		} else {
			cloudEvent = nil
		}
		b = append(b, "data: "...)
		b = append(b, line...)
		b = append(b, '\n')
	}
	return append(b, '\n')
}

// appendComment appends what keeps the stream alive: a comment, and the
// position, so that a reader whose filter leaves everything out does not resume
// from long ago.
func appendComment(b []byte, position int64) []byte {
	b = append(b, ":\nid: "...)
	b = strconv.AppendInt(b, position, 10)
	return append(b, "\n\n"...)
}
