// Package file delivers events to a file or a stream, one CloudEvent to a line
// (NDJSON): to see them while developing, or to feed a program that follows
// a file.
package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/pawlhq/pawl/outbox/sink"
	"github.com/pawlhq/pawl/transitions"
)

// Config says where the events go.
type Config struct {
	// Path names the file. It is made when it is absent, and made anew after it was
	// renamed or removed, so that a rotation needs no signal. Its folder must exist.
	Path string
	// NoSync leaves it to the operating system when what was written reaches the
	// disk. Without it that has happened before an event counts as delivered.
	NoSync bool
}

// Sink appends to a file or a stream. What is delivered while something is being
// written is one write, and reaches the disk at once. After one that failed, the
// batches of it are written again: a reader meets the lines that had been written
// twice, and one that was broken off.
type Sink struct {
	mu     sync.Mutex
	next   *write // what waits to be written; nil: nothing
	buffer []byte // to be used again
	closed bool

	writing sync.Mutex // locked before mu
	out     output
}

// write is what is written at once. Whoever comes first writes it.
type write struct {
	lines []byte
	done  bool // guarded by Sink.writing, as err is
	err   error
}

// output is where lines go.
type output interface {
	// append writes whole lines, all of them or with an error.
	append(lines []byte) error
	// check says whether append could work.
	check() error
	close() error
}

// keep is how large a buffer may be to be used again.
const keep = 1 << 20

// New prepares to append to a file. The file is opened by the first Deliver.
func New(c Config) (*Sink, error) {
	if c.Path == "" {
		return nil, errors.New("file sink: the path is missing")
	}
	return &Sink{out: &disk{path: c.Path, sync: !c.NoSync}}, nil
}

// NewWriter prepares to write to a stream, such as the standard output. A write
// that blocks is not ended by a context. Close does not close w.
func NewWriter(w io.Writer) *Sink { return &Sink{out: &stream{w: w}} }

// Deliver implements [sink.Sink]. Either all events are delivered or none is;
// then the failure is about the file. Deliveries follow each other, in whatever
// order they come.
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

// add adds events to what is written next; nil: nothing is written any more.
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

// flush writes what there is. s.writing is held.
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

// appendLine appends JSON as one line. Its line breaks are white space between
// tokens: within strings they are escaped.
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

// Check implements [sink.Checker]: it opens the file.
func (s *Sink) Check(context.Context) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return errors.New("the sink is closed")
	}
	return s.out.check()
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

// stream is an io.Writer as output.
type stream struct {
	w    io.Writer
	torn bool // the last line is not whole
}

func (s *stream) append(lines []byte) error {
	if s.torn {
		lines = append([]byte{'\n'}, lines...)
	}
	n, err := s.w.Write(lines)
	if n > 0 {
		s.torn = lines[n-1] != '\n'
	}
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

func (s *stream) check() error { return nil }
func (s *stream) close() error { return nil }
