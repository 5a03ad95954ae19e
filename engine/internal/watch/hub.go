package watch

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/pawlhq/pawl/internal/clock"
	"github.com/pawlhq/pawl/transitions"
)

// Config is what a hub needs. Every field must be set.
type Config struct {
	// Read reads those of a tenant's commands that are there, of readSize at most.
	Read func(ctx context.Context, tenant string, refs []transitions.Ref) ([]transitions.Record, error)
	// Announce tells other nodes that commands have changed, by the hashes of their
	// names; their Heard is called. It must not block.
	Announce func(commands []uint64)
	Clock    *clock.Clock // by which answers expire
	Log      *slog.Logger
}

const (
	pollEvery  = time.Second
	readSize   = 1000                  // commands in one read, at most
	readGap    = 5 * time.Millisecond  // between two reads of one tenant
	readers    = 4                     // reads at a time
	readBudget = 10 * time.Second      // of one read
	patience   = 20 * time.Millisecond // with an end on this node, before Await reads
)

// Hub serves the watchers of one node.
type Hub struct {
	config Config
	ctx    context.Context
	stop   context.CancelFunc
	work   sync.WaitGroup
	slots  chan struct{} // one for each read at a time

	mu      sync.Mutex
	ended   bool
	watched map[uint64][]*command // by the hash of the name
	wanted  map[string][]*command // to be read, by tenant; a tenant that is in it has a reader
}

// New makes a hub; Start begins its work.
func New(c Config) *Hub {
	h := &Hub{config: c, slots: make(chan struct{}, readers), watched: map[uint64][]*command{}, wanted: map[string][]*command{}}
	h.ctx, h.stop = context.WithCancel(context.Background())
	return h
}

// Start begins to poll.
func (h *Hub) Start() { h.work.Go(h.poll) }

// Stop ends every wait with ShuttingDown, and returns when all work has ended.
// It may be called twice.
func (h *Hub) Stop() {
	h.mu.Lock()
	h.ended = true
	h.mu.Unlock()
	h.stop()
	h.work.Wait()
}

// Changed takes notice that this node has changed commands, and tells the
// others. It is called after the commit.
func (h *Hub) Changed(refs []transitions.Ref) {
	hashes := make([]uint64, len(refs))
	for i, ref := range refs {
		hashes[i] = ref.Hash()
	}
	h.mu.Lock()
	for _, hash := range hashes {
		for _, c := range h.watched[hash] {
			if c.watchers > 0 { // those who wait for the end hear of it by Ended
				h.want(c)
			}
		}
	}
	h.mu.Unlock()
	h.config.Announce(hashes)
}

// Ended gives those on this node who wait for a command's end its final answer.
// Watchers, and other nodes, learn of it by Changed.
func (h *Hub) Ended(ref transitions.Ref, answer transitions.Receipt) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c := h.find(ref.Hash(), ref); c != nil {
		answer.Replayed = true
		c.answer = &answer
		c.announce()
	}
}

// Heard takes notice that another node has changed commands with these hashes.
func (h *Hub) Heard(commands []uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, hash := range commands {
		for _, c := range h.watched[hash] {
			h.want(c)
		}
	}
}

// poll has everything read, now and then, that may have changed unnoticed.
func (h *Hub) poll() {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-h.ctx.Done():
			return
		}
		h.mu.Lock()
		for _, list := range h.watched {
			for _, c := range list {
				if !c.finished() {
					h.want(c)
				}
			}
		}
		h.mu.Unlock()
	}
}

// join is the command that somebody begins to watch. h.mu is held.
func (h *Hub) join(ref transitions.Ref) *command {
	hash := ref.Hash()
	c := h.find(hash, ref)
	if c == nil {
		c = &command{ref: ref, hash: hash, changed: make(chan struct{})}
		h.watched[hash] = append(h.watched[hash], c)
	}
	return c
}

// left lets go of a command that nobody watches any more. h.mu is held.
func (h *Hub) left(c *command) {
	if c.watchers+c.waiters > 0 {
		return
	}
	list := h.watched[c.hash]
	if len(list) == 1 {
		delete(h.watched, c.hash)
		return
	}
	h.watched[c.hash] = slices.DeleteFunc(list, func(other *command) bool { return other == c })
}

func (h *Hub) find(hash uint64, ref transitions.Ref) *command {
	for _, c := range h.watched[hash] {
		if c.ref == ref {
			return c
		}
	}
	return nil
}
