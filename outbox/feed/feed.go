// Package feed tails the logs for the followers on this node.
//
// Each followed tenant has one tail. It reads new events when woken, renders each event once, and
// keeps a bounded ring of the newest. Followers read from the ring; followers further behind read
// the table until they have caught up. Followers pull, so a slow follower does not slow others.
//
// Commits of this node wake a tail directly and pass their events, so that these need not be read.
// Commits of other nodes wake it by notifications. Because notifications can be lost, one query per
// second polls all tails of the node. A node without followers does not poll.
package feed

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/pawlhq/pawl/internal/kernel/backoff"
	"github.com/pawlhq/pawl/internal/kernel/outbox"
	"github.com/pawlhq/pawl/transitions"
)

// Config configures a feed.
type Config struct {
	Log    *outbox.Table
	Logger *slog.Logger
	Peers  Peers // optional; without it other nodes only poll
}

// Peers notifies other nodes.
type Peers interface {
	// Head announces that a tenant's log has grown to head, so that each node calls its NoteHead.
	// It must not block.
	Head(tenant string, head int64)
}

const (
	ringSize   = 8192                  // transitions in a ring
	ringBytes  = 32 << 20              // approximate size of a ring
	firstRead  = 4                     // transitions in a follower's first read, before their size is known
	readSize   = 512                   // maximum number of transitions in a read
	readBytes  = transitions.PageBytes // approximate size of a read; adjusts the next read
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

// New returns a feed. Start begins to poll.
func New(c Config) *Feed {
	f := &Feed{config: c, tails: map[string]*tail{}}
	f.ctx, f.stop = context.WithCancel(context.Background())
	return f
}

// Start begins to poll.
func (f *Feed) Start() { f.work.Go(f.poll) }

// Stop ends all waits of followers with ShuttingDown and waits for the feed's goroutines. It may be
// called twice.
func (f *Feed) Stop() {
	f.mu.Lock()
	f.ended = true
	f.mu.Unlock()
	f.stop()
	f.work.Wait()
}

// Committed records a commit of this node and notifies the others. events returns the events of the
// commit up to head, with their positions, so that they need not be read. It is called
// synchronously or not at all.
func (f *Feed) Committed(tenant string, head int64, events func() []transitions.Event) {
	if t := f.tail(tenant); t != nil {
		t.mu.Lock()
		wanted := events != nil && t.begun && t.localCommits.bytes < localBytes
		t.mu.Unlock()
		if wanted {
			if list := events(); len(list) > 0 {
				t.mu.Lock()
				t.localCommits.add(list)
				t.mu.Unlock()
			}
		}
		t.wake(head)
	}
	if f.config.Peers != nil {
		f.config.Peers.Head(tenant, head)
	}
}

// NoteHead records that a tenant's log has grown to head, according to a commit or a notification.
func (f *Feed) NoteHead(tenant string, head int64) {
	if t := f.tail(tenant); t != nil {
		t.wake(head)
	}
}

// tail returns the tail of a tenant, or nil without followers.
func (f *Feed) tail(tenant string) *tail {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.tails[tenant]
}

// Head returns the last position of the tenant's log.
func (f *Feed) Head(ctx context.Context, tenant string) (int64, error) {
	return f.config.Log.Head(ctx, tenant)
}

// Readable returns nil if the log can be read from a position, EventsGone, or a database error.
func (f *Feed) Readable(ctx context.Context, tenant string, after int64) error {
	return readable(ctx, f.config.Log, tenant, after)
}

// Follow returns a follower of the tenant's log from a position.
func (f *Feed) Follow(tenant string, after int64) transitions.Follower {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.tails[tenant]
	if t == nil {
		t = &tail{f: f, tenant: tenant, woken: make(chan struct{}, 1), changed: make(chan struct{})}
		t.ctx, t.stop = context.WithCancel(f.ctx)
		f.tails[tenant] = t
		if !f.ended {
			f.work.Go(t.run)
		}
	}
	t.followers++
	return &follower{f: f, t: t, last: after}
}

func (f *Feed) poll() {
	for backoff.Sleep(f.ctx, pollEvery) {
		f.mu.Lock()
		tenants := slices.Collect(maps.Keys(f.tails))
		f.mu.Unlock()
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
