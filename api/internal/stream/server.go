package stream

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Wire is how what a stream has to say is said over HTTP.
type Wire struct {
	Status func(*transitions.Record) ([]byte, error)  // how a command stands, as JSON
	Judge  func(ctx context.Context, err error) error // the error to tell; what is not the caller's fault it logs
}

// Config bounds and paces WebSocket connections and event streams.
type Config struct {
	// MaxLag is how many transitions a reader that had caught up may fall behind
	// before it is cut; 10,000.
	MaxLag int64
	// WriteTimeout is how long one write to a socket may block; 10 seconds.
	WriteTimeout time.Duration
	// PingEvery is the time between two pings on a WebSocket connection; 20
	// seconds. A peer that is silent for three of them is gone.
	PingEvery time.Duration
	// CommentEvery is the time between two comments on a silent event stream; 15
	// seconds.
	CommentEvery time.Duration
	// WritesPerSecond is what all streams of the node together aim at under
	// load; 50,000. The first event after a pause is always written at once;
	// when more follow, a stream waits for its share of this rate, a tenth of a
	// second at most, and writes what has gathered.
	WritesPerSecond int
	// MessageSize is the largest message in bytes that a WebSocket client may
	// send; 64 KiB.
	MessageSize int64
	// Subscriptions is how many subscriptions and watches a connection may have;
	// 64.
	Subscriptions int
}

// Server is the streams of one node.
type Server struct {
	engine *engine.Engine
	config Config
	log    *slog.Logger
	status func(*transitions.Record) ([]byte, error)
	judge  func(context.Context, error) error
	streams
}

// New makes a server. It starts nothing. The Config has to be complete.
func New(e *engine.Engine, c Config, log *slog.Logger, w Wire) *Server {
	return &Server{engine: e, config: c, log: log, status: w.Status, judge: w.Judge}
}

// streams knows everything that lasts longer than a moment, so that it can be
// ended.
type streams struct {
	mu       sync.Mutex
	stopping bool
	open     map[*stream]struct{}
	readers  int           // how many of them read the log
	empty    chan struct{} // made by Stop, closed when the last stream has gone
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
	if err := srv.add(x); err != nil {
		cancel()
		return nil, nil, err
	}
	return limited, func() { srv.remove(x); cancel() }, nil
}

// Open is how many streams there are.
func (s *streams) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
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

// Refusing returns ShuttingDown after Stop, else nil.
func (s *streams) Refusing() error {
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

// Stop ends every stream, and returns when all of their goroutines are gone. If ctx
// ends first, connections are cut off, and the context's error is returned, still after
// all goroutines are gone. New streams are refused from then on, with ShuttingDown.
func (s *streams) Stop(ctx context.Context) error {
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
