package stream

import (
	"context"
	"sync"
	"time"

	"github.com/pawlhq/pawl/workflow"
)

// streams knows everything that lasts longer than a moment, so that it can be
// ended.
type streams struct {
	mu       sync.Mutex
	stopping bool
	open     map[*stream]struct{}
	readers  int           // how many of them read the log
	empty    chan struct{} // made by stop, closed when the last stream has gone
}

var errStopping = workflow.Errorf(workflow.ShuttingDown, "the node is stopping; another one will serve you")

// stream is one of them. Both functions return at once and may be called more
// than once.
type stream struct {
	end   func() // asks it to end
	cut   func() // ends it by force; nil where end is enough
	reads bool   // it goes on reading the log
}

// Wait returns a context that ends after a time, or when the node stops. The caller
// must call done. Error: ShuttingDown.
func (srv *Server) Wait(ctx context.Context, d time.Duration) (limited context.Context, done func(), err error) {
	limited, cancel := context.WithTimeout(ctx, d)
	x := &stream{end: cancel}
	if err := srv.streams.add(x); err != nil {
		cancel()
		return nil, nil, err
	}
	return limited, func() { srv.streams.remove(x); cancel() }, nil
}

// add makes a stream known. The caller must remove it when the last of its
// goroutines is gone. Error: ShuttingDown.
func (s *streams) add(x *stream) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return errStopping
	}
	if s.open == nil {
		s.open = map[*stream]struct{}{}
	}
	s.open[x] = struct{}{}
	if x.reads {
		s.readers++
	}
	return nil
}

// arm says how to end a stream by force, where that was not known from the
// start.
func (s *streams) arm(x *stream, cut func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x.cut = cut
}

// refusing returns ShuttingDown after stop, else nil.
func (s *streams) refusing() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return errStopping
	}
	return nil
}

func (s *streams) remove(x *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, x)
	if x.reads {
		s.readers--
	}
	if s.empty != nil && len(s.open) == 0 {
		close(s.empty)
		s.empty = nil
	}
}

func (s *streams) stop(ctx context.Context) error {
	empty := s.endAll()
	select {
	case <-empty:
		return nil
	case <-ctx.Done():
	}
	s.cutAll()
	<-empty
	return ctx.Err()
}

// endAll returns a channel that is closed when no stream is left.
func (s *streams) endAll() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopping = true
	if len(s.open) == 0 {
		empty := make(chan struct{})
		close(empty)
		return empty
	}
	if s.empty == nil {
		s.empty = make(chan struct{})
	}
	for x := range s.open {
		x.end()
	}
	return s.empty
}

func (s *streams) cutAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for x := range s.open {
		if x.cut != nil {
			x.cut()
		}
	}
}

// maxPace bounds how long an event may wait for others to be written with.
const maxPace = 100 * time.Millisecond

// pace is the time between two writes of one reader of the log under load, such
// that all of them together keep to the rate.
func (s *streams) pace(perSecond int) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return min(time.Duration(s.readers)*time.Second/time.Duration(perSecond), maxPace)
}
