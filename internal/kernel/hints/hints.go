package hints

import (
	"context"
	"crypto/rand"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Config is what an exchange needs. All but Off must be set.
type Config struct {
	Pool    *pgxpool.Pool                                             // to send
	Connect func(ctx context.Context, name string) (*pgx.Conn, error) // to hear; name is for pg_stat_activity
	Channel string                                                    // of NOTIFY
	Log     *slog.Logger
	Off     bool // neither send nor hear
}

// Listener is what to do about the hints of other nodes. It is called by one
// goroutine, and should not hold it up.
type Listener struct {
	Head    func(tenant string, head int64) // a log has grown
	Changed func(commands []uint64)         // commands have changed; these are the hashes of their names
	Due     func()                          // there is work that the other node cannot take
	Sinks   func()                          // a sink has been given back, or an operation has changed one
	Begins  func()                          // new instances begin with another version; nil: it is ignored
}

// budget bounds a send. A hint that is older helps nobody: all have polled. Only
// tests wait for longer, which do not poll.
var budget = time.Second

const (
	// gap is the least time between two sends. What happens meanwhile is sent
	// together.
	gap = 20 * time.Millisecond
	// most is how many changed commands wait to be sent, at most. Others find out
	// about the rest by polling.
	most = 1 << 16
)

// Exchange exchanges hints with other nodes.
type Exchange struct {
	config Config
	node   string // tells our own hints from others'
	ctx    context.Context
	stop   context.CancelFunc
	work   sync.WaitGroup

	mu     sync.Mutex
	unsaid pendingHints
	some   chan struct{} // one token, when there is something to send
}

// pendingHints are what others have not been told of.
type pendingHints struct {
	heads    map[string]int64
	commands []uint64 // with repetitions
	due      bool
	sinks    bool
	begins   bool
}

// New makes an exchange; Start begins its work.
func New(c Config) *Exchange {
	x := &Exchange{config: c, node: rand.Text(), some: make(chan struct{}, 1)}
	x.ctx, x.stop = context.WithCancel(context.Background())
	return x
}

// Start begins to send what was announced, and to listen.
func (x *Exchange) Start(l Listener) {
	if x.config.Off {
		return
	}
	x.work.Go(x.send)
	x.work.Go(func() { x.listen(l) })
}

// Stop sends what waits to be sent, and returns when all work has ended. It may
// be called twice.
func (x *Exchange) Stop() {
	x.stop()
	x.work.Wait()
	x.tell()
}

// Head tells others that a tenant's log has grown to head. Like the other
// announcements it only takes notice, and never blocks.
func (x *Exchange) Head(tenant string, head int64) {
	x.announce(func(n *pendingHints) {
		if n.heads == nil {
			n.heads = map[string]int64{}
		}
		n.heads[tenant] = max(n.heads[tenant], head)
	})
}

// Changed tells others that commands have changed, by the hashes of their names.
func (x *Exchange) Changed(commands []uint64) {
	x.announce(func(n *pendingHints) {
		n.commands = append(n.commands, commands[:min(len(commands), most-len(n.commands))]...)
	})
}

// Due tells others that there is work which this node cannot take.
func (x *Exchange) Due() { x.announce(func(n *pendingHints) { n.due = true }) }

// Sinks tells others that a sink has been given back, or that an operation has
// changed one.
func (x *Exchange) Sinks() { x.announce(func(n *pendingHints) { n.sinks = true }) }

// Begins tells others that new instances of a workflow begin with another version.
func (x *Exchange) Begins() { x.announce(func(n *pendingHints) { n.begins = true }) }

// Flush sends what waits. It also works on an exchange that is not started.
func (x *Exchange) Flush() { x.tell() }

func (x *Exchange) announce(note func(*pendingHints)) {
	if x.config.Off {
		return
	}
	x.mu.Lock()
	note(&x.unsaid)
	x.mu.Unlock()
	select {
	case x.some <- struct{}{}:
	default:
	}
}

// take returns what others have not been told of, and forgets it.
func (x *Exchange) take() pendingHints {
	x.mu.Lock()
	defer x.mu.Unlock()
	n := x.unsaid
	x.unsaid = pendingHints{}
	return n
}
