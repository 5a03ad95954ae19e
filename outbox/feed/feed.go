package feed

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/pawlhq/pawl/internal/kernel/outbox"
	"github.com/pawlhq/pawl/internal/kernel/pause"
	"github.com/pawlhq/pawl/transitions"
)

// Config is what a feed needs.
type Config struct {
	Log    *outbox.Table
	Logger *slog.Logger
	Peers  Peers // nil: other nodes find out when they poll
}

// Peers are the other nodes.
type Peers interface {
	// Head tells that a tenant's log has grown to head, so that each node calls its
	// NoteHead. It must not block.
	Head(tenant string, head int64)
}

const (
	ringSize   = 8192                  // transitions that a tail keeps
	ringBytes  = 32 << 20              // of events that a tail keeps, about
	firstRead  = 4                     // transitions in the first read of a follower, which knows nothing of their size
	readSize   = 512                   // transitions in one read, at most
	readBytes  = transitions.PageBytes // of events in one read, about; what is read sets the size of the next
	pollEvery  = time.Second
	readBudget = 10 * time.Second
)

// Feed serves the followers of one node.
type Feed struct {
	config Config
	ctx    context.Context
	stop   context.CancelFunc
	work   sync.WaitGroup

	mu    sync.Mutex
	tails map[string]*tail
	ended bool
}

// New makes a feed; Start begins its work.
func New(c Config) *Feed {
	f := &Feed{config: c, tails: map[string]*tail{}}
	f.ctx, f.stop = context.WithCancel(context.Background())
	return f
}

// Start begins to poll.
func (f *Feed) Start() { f.work.Go(f.poll) }

// Stop ends every follower's wait with ShuttingDown, and returns when all work
// has ended. It may be called twice.
func (f *Feed) Stop() {
	f.mu.Lock()
	f.ended = true
	f.mu.Unlock()
	f.stop()
	f.work.Wait()
}

// Committed takes in a commit of this node, and tells the others. events gives the events
// of that commit, with their positions, up to head: so they need not be read. It is called
// at once or not at all.
func (f *Feed) Committed(tenant string, head int64, events func() []transitions.Event) {
	if t := f.tail(tenant); t != nil {
		t.hand(head, events)
	}
	if f.config.Peers != nil {
		f.config.Peers.Head(tenant, head)
	}
}

// NoteHead takes in that a tenant's log has grown to head, as a commit or a hint says.
func (f *Feed) NoteHead(tenant string, head int64) {
	if t := f.tail(tenant); t != nil {
		t.wake(head)
	}
}

// tail is that of a tenant; nil: nobody follows it.
func (f *Feed) tail(tenant string) *tail {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.tails[tenant]
}

// Head is the position of the tenant's newest transition.
func (f *Feed) Head(ctx context.Context, tenant string) (int64, error) {
	return f.config.Log.Head(ctx, tenant)
}

// Readable reports whether the log can be read after a position. Its error is
// EventsGone, or the database's.
func (f *Feed) Readable(ctx context.Context, tenant string, after int64) error {
	first, err := f.config.Log.First(ctx, tenant, after)
	if err == nil && first > after+1 {
		err = gone(after, first)
	}
	return err
}

// Follow reads the tenant's log after a position.
func (f *Feed) Follow(tenant string, after int64) transitions.Follower {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.tails[tenant]
	if t == nil {
		t = newTail(f, tenant)
		f.tails[tenant] = t
		if !f.ended {
			f.work.Go(t.run)
		}
	}
	t.followers++
	return &follower{f: f, t: t, last: after}
}

// leave lets go of a tail, and ends it with its last follower.
func (f *Feed) leave(t *tail) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if t.followers--; t.followers == 0 {
		delete(f.tails, t.tenant)
		t.stop()
	}
}

// poll wakes the tails whose log has grown unnoticed.
func (f *Feed) poll() {
	for pause.For(f.ctx, pollEvery) {
		tenants := f.followed()
		if len(tenants) == 0 {
			continue
		}
		ctx, cancel := context.WithTimeout(f.ctx, readBudget)
		heads, err := f.config.Log.Heads(ctx, tenants)
		cancel()
		if err != nil {
			if f.ctx.Err() == nil {
				f.config.Logger.Warn("cannot poll the log", "error", err)
			}
			continue
		}
		for tenant, head := range heads {
			f.NoteHead(tenant, head)
		}
	}
}

func (f *Feed) followed() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Keys(f.tails))
}
