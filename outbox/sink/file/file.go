// Package file writes events to a file or a stream, one CloudEvent per line (NDJSON), for
// development or for programs that follow a file.
package file

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"

	"github.com/pawlhq/pawl/outbox/sink"
	"github.com/pawlhq/pawl/transitions"
)

// Config configures a file sink.
type Config struct {
	// Path names the file. It is created if absent, and again after it was renamed or removed, so
	// rotation needs no signal. Its directory must exist.
	Path string
	// NoSync skips fsync. By default, events only count as delivered after fsync.
	NoSync bool
}

// Sink appends to a file or a stream. Concurrent deliveries share a write and an fsync. After a
// failed write its batches are written again, so readers may see repeated lines and one incomplete
// line.
type Sink struct {
	mu     sync.Mutex
	next   *write // pending write; nil: none
	buffer []byte // reused
	closed bool

	writing sync.Mutex // acquired before mu
	out     output
}

// write is a shared write. The first delivery executes it.
type write struct {
	lines []byte
	done  bool // guarded by Sink.writing, like err
	err   error
}

// keep is the maximum size of a reused buffer.
const keep = 1 << 20

// New returns a sink for a file. The first Deliver opens the file.
func New(c Config) (*Sink, error) {
	if c.Path == "" {
		return nil, errors.New("file sink: Path is required")
	}
	return &Sink{out: output{path: c.Path, sync: !c.NoSync}}, nil
}

// NewWriter returns a sink for a stream, such as standard output. Contexts do not interrupt a
// blocked write. Close does not close w.
func NewWriter(w io.Writer) *Sink { return &Sink{out: output{stream: w}} }

// Deliver implements [sink.Sink]. It delivers all events or none; failures concern the file.
// Concurrent deliveries are serialized in any order.
func (s *Sink) Deliver(ctx context.Context, events []transitions.Logged) []*sink.Failure {
	if len(events) == 0 {
		return nil
	}
	w := s.add(ctx, events)
	if w == nil {
		return sink.Together(ctx, events, sink.Fail(sink.Unavailable, nil, "the sink is closed"))
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	if !w.done {
		s.flush(w)
	}
	if w.err != nil {
		return sink.Together(ctx, events, sink.Fail(sink.Unavailable, w.err, "%v", w.err))
	}
	return nil
}

// add adds events to the pending write, or returns nil if the sink is closed or ctx has ended.
func (s *Sink) add(ctx context.Context, events []transitions.Logged) *write {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || ctx.Err() != nil {
		return nil
	}
	if s.next == nil {
		s.next = &write{lines: s.buffer[:0]}
		s.buffer = nil
	}
	for i := range events {
		s.next.lines = appendLine(s.next.lines, events[i].CloudEvent)
	}
	return s.next
}

// flush executes the pending write. The caller holds s.writing.
func (s *Sink) flush(w *write) {
	s.mu.Lock()
	s.next = nil
	s.mu.Unlock()
	w.err, w.done = s.out.append(w.lines), true
	s.mu.Lock()
	defer s.mu.Unlock()
	if cap(w.lines) <= keep {
		s.buffer = w.lines
	}
	w.lines = nil
}

// appendLine appends JSON as one line. Line breaks in JSON are white space between tokens, as
// strings escape them.
func appendLine(lines, json []byte) []byte {
	from := len(lines)
	lines = append(lines, json...)
	if bytes.ContainsAny(json, "\r\n") {
		for i, c := range lines[from:] {
			if c == '\n' || c == '\r' {
				lines[from+i] = ' '
			}
		}
	}
	return append(lines, '\n')
}

// Check implements [sink.Checker] by opening the file.
func (s *Sink) Check(context.Context) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return errors.New("the sink is closed")
	}
	return s.out.open()
}

// Close implements [sink.Sink].
func (s *Sink) Close(context.Context) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	closed := s.closed
	s.closed = true
	s.mu.Unlock()
	if closed {
		return nil
	}
	return s.out.close()
}
