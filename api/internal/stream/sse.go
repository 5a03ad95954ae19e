package stream

import (
	"bytes"
	"context"
	"net/http"
	"strconv"
	"time"
)

// MediaType is that of server-sent events.
const MediaType = "text/event-stream"

// sse writes an event stream, in the form of the HTML standard, section 9.2.
type sse struct {
	w       http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration // of one write
}

// serveSSE answers with an event stream that run writes, until run returns. The
// context that it gets ends when the caller is gone or the node stops. What run
// returns can no longer be answered, and is logged.
func (srv *Server) serveSSE(w http.ResponseWriter, r *http.Request, readsLog bool, run func(context.Context, *sse) error) error {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	s := &sse{w: w, control: http.NewResponseController(w), timeout: srv.config.WriteTimeout}
	x := &stream{end: cancel, cut: func() { _ = s.control.SetWriteDeadline(time.Now()) }, reads: readsLog}
	if err := srv.streams.add(x); err != nil {
		return err
	}
	defer srv.streams.remove(x)
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
	h.Set("Vary", "Accept")
	h.Set("X-Content-Type-Options", "nosniff")
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

// appendServerSent appends an event. Its id is its position, but only on the
// last event of a transition: a reader that is cut off between two of them
// resumes before both.
func appendServerSent(b, cloudEvent []byte, position int64, more bool) []byte {
	if !more {
		b = append(b, "id: "...)
		b = strconv.AppendInt(b, position, 10)
		b = append(b, '\n')
	}
	return appendData(b, cloudEvent)
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
