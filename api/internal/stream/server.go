package stream

import (
	"context"
	"log/slog"
	"time"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Engine is what is followed. Its errors are *workflow.Error.
type Engine interface {
	// Command returns what is stored under a key, its body as it was answered.
	// Errors: CommandNotFound, KeyExpired.
	Command(ctx context.Context, tenant, scope, key string) (transitions.Record, error)
	// Watch returns a watcher of a command.
	Watch(tenant, scope, key string) transitions.Watcher

	// Workflow returns a workflow; version 0 is the newest. Error: WorkflowNotFound.
	Workflow(name string, version int) (*workflow.Workflow, error)
	// Versions returns the versions of a workflow that the node knows, the newest
	// first.
	Versions(name string) []*workflow.Workflow

	// Head returns the newest position of the tenant's log, 0 for an empty one.
	Head(ctx context.Context, tenant string) (int64, error)
	// Readable reports whether the tenant's log can be read after a position.
	// Errors: EventsGone, Unavailable.
	Readable(ctx context.Context, tenant string, after int64) error
	// Follow returns a reader of the tenant's log after a position.
	Follow(tenant string, after int64) transitions.Follower
}

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
	engine  Engine
	config  Config
	log     *slog.Logger
	status  func(*transitions.Record) ([]byte, error)
	judge   func(context.Context, error) error
	streams streams
}

// New makes a server. It starts nothing. The Config has to be complete.
func New(e Engine, c Config, log *slog.Logger, w Wire) *Server {
	return &Server{engine: e, config: c, log: log, status: w.Status, judge: w.Judge}
}

// Stop ends every stream, and returns when all of their goroutines are gone. If ctx
// ends first, connections are cut off, and the context's error is returned, still after
// all goroutines are gone. New streams are refused from then on, with ShuttingDown.
func (srv *Server) Stop(ctx context.Context) error { return srv.streams.stop(ctx) }

// Refusing returns ShuttingDown after Stop, else nil.
func (srv *Server) Refusing() error { return srv.streams.refusing() }

// Open is how many streams there are.
func (srv *Server) Open() int {
	srv.streams.mu.Lock()
	defer srv.streams.mu.Unlock()
	return len(srv.streams.open)
}
