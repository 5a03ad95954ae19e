package watch

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/pawlhq/pawl/internal/kernel/backoff"
	"github.com/pawlhq/pawl/internal/kernel/clock"
	"github.com/pawlhq/pawl/transitions"
)

// Config is what a hub needs. Every field must be set.
type Config struct {
	// Read reads up to readSize commands of any tenants. The result has each command at the index of its name, and nil for a missing one.
	Read func(ctx context.Context, refs []transitions.Ref) ([]*transitions.Record, error)
	// Announce tells other nodes that commands have changed, by the hashes of their names; their Heard is called. It must not block.
	Announce func(commands []uint64)
	Clock    *clock.Clock // by which answers expire
	Log      *slog.Logger
}

const (
	pollEvery  = time.Second
	sliceEvery = 250 * time.Millisecond // between two reads of a poll
	readSize   = 2000                   // commands in one read, at most
	readGap    = 5 * time.Millisecond   // between two reads
	readers    = 4                      // reads at a time
	readBudget = 10 * time.Second       // of one read
	patience   = 20 * time.Millisecond  // with an end on this node, before Await reads
)

// Hub serves the watchers of one node.
type Hub struct {
	config  Config
	ctx     context.Context
	stop    context.CancelFunc
	work    sync.WaitGroup
	mu      sync.Mutex
	ended   bool
	watched map[uint64][]*command // by the hash of the name
	wanted  []*command            // to be read
	reading int                   // readers at work
}

// New makes a hub; Start begins its work.
func New(c Config) *Hub {
	h := &Hub{config: c, watched: map[uint64][]*command{}}
	h.ctx, h.stop = context.WithCancel(context.Background())
	return h
}

// Start begins to poll.
func (h *Hub) Start() { h.work.Go(h.poll) }

// Stop ends every wait with ShuttingDown, and returns when all work has ended. It may be called twice.
func (h *Hub) Stop() {
	h.mu.Lock()
	h.ended = true
	h.mu.Unlock()
	h.stop()
	h.work.Wait()
}

// Changed takes notice that this node has changed commands, and tells the others. It is called after the commit.
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

// Ended gives those on this node who wait for a command's end its final answer. Watchers, and other nodes, learn of it by Changed.
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

// poll has everything read, now and then, that may have changed unnoticed: a slice of it
// at a time, so that a poll of very many takes longer, and does not ask more often.
func (h *Hub) poll() {
	for wait := pollEvery; backoff.Sleep(h.ctx, wait); {
		begun := time.Now()
		var unfinished []*command
		h.mu.Lock()
		for _, same := range h.watched {
			for _, c := range same {
				if !c.finished() {
					unfinished = append(unfinished, c)
				}
			}
		}
		h.mu.Unlock()
		for slice := range slices.Chunk(unfinished, readSize) {
			h.mu.Lock()
			for _, c := range slice {
				if c.watchers+c.waiters > 0 {
					h.want(c)
				}
			}
			h.mu.Unlock()
			if !backoff.Sleep(h.ctx, sliceEvery) {
				return
			}
		}
		wait = max(0, time.Until(begun.Add(pollEvery)))
	}
}

// join adds a watcher and returns the command. h.mu is held.
func (h *Hub) join(ref transitions.Ref) *command {
	hash := ref.Hash()
	c := h.find(hash, ref)
	if c == nil {
		c = &command{ref: ref, hash: hash, changed: make(chan struct{})}
		h.watched[hash] = append(h.watched[hash], c)
	}
	return c
}

// left removes a command without watchers. h.mu is held.
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
