// Package budget accounts for the memory that callers make a node hold: requests, bodies, pages and streams. Each holder draws on
// several shares of one budget, such as its credential's and its tenant's, and is refused where one of them is used up. What is held
// is an estimate from above, made before the memory is used.
package budget

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/pawlhq/pawl/workflow"
)

// What is charged, in bytes.
const (
	Request = 32 << 10 // a request while it is served, with its header
	Stream  = 64 << 10 // a WebSocket connection or an event stream, in addition to its request
	Follow  = 16 << 10 // a subscription of a WebSocket connection
	Page    = 8 << 20  // a page of rows, from the database to the socket
	PerByte = 4        // each byte of a body: itself, what is decoded from it, and what the engine makes of that
)

// The limits of waiting.
const (
	patience   = 2 * time.Second // of a request that waits for memory
	maxWaiting = 64              // requests that wait; streams that catch up are not counted
)

// Budget is the memory of one node for its callers.
type Budget struct {
	size int64

	mu      sync.Mutex
	held    int64
	shares  map[string]*share // those that a holder has open
	waiting []*waiter         // the first has waited longest
	limited int               // waiters that are requests
	refused int64
}

// Share is a limit that a holder is under, together with every other holder that names it.
type Share struct {
	Key      string
	Whose    string // the holder that a refusal names, such as "the tenant"; "" for the node
	Bytes    int64  // 0: no limit
	Requests int    // holders at once; 0: no limit
}

type share struct {
	Share
	held  int64
	users int
}

// Holder is a request or a stream, which holds memory until it is done. It may be used by several goroutines.
type Holder struct {
	budget *Budget
	shares []*share
	held   int64
}

type waiter struct {
	holder *Holder
	bytes  int64
	ready  chan struct{} // closed when the bytes are the holder's
}

// New returns a budget of so many bytes.
func New(size int64) *Budget { return &Budget{size: size, shares: map[string]*share{}} }

// Part is so many eighths of the budget.
func (b *Budget) Part(eighths int64) int64 { return b.size / 8 * eighths }

// Stats is how a budget stands.
type Stats struct {
	Size, Held int64 // bytes
	Refused    int64 // requests, since the start
}

// Stats returns how the budget stands.
func (b *Budget) Stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	return Stats{Size: b.size, Held: b.held, Refused: b.refused}
}

// Open begins to hold memory for a request, under all of the shares. It waits for it as Take does. The caller must call Done on the
// holder. Errors: those of Take, and RateLimited if a share has its maximum of holders.
func (b *Budget) Open(ctx context.Context, shares ...Share) (*Holder, error) {
	h := &Holder{budget: b}
	if err := h.join(shares); err != nil {
		return nil, err
	}
	if err := h.Take(ctx, Request); err != nil {
		h.Done()
		return nil, err
	}
	return h, nil
}

func (h *Holder) join(shares []Share) error {
	b := h.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range shares {
		if have := b.shares[s.Key]; have != nil && s.Requests > 0 && have.users >= s.Requests {
			b.refused++
			return workflow.Errorf(workflow.RateLimited, "%s has %d requests and streams open on this node, which is the most", s.Whose, s.Requests)
		}
	}
	for _, s := range shares {
		of := b.shares[s.Key]
		if of == nil {
			of = &share{}
			b.shares[s.Key] = of
		}
		of.Share = s
		of.users++
		h.shares = append(h.shares, of)
	}
	return nil
}

// full is the first share that has no room for more bytes, nil if all have.
func (h *Holder) full(bytes int64) *Share {
	for _, s := range h.shares {
		if s.Bytes > 0 && s.held+bytes > s.Bytes {
			full := s.Share // who reads it later has no lock
			return &full
		}
	}
	if b := h.budget; b.held+bytes > b.size {
		return &Share{}
	}
	return nil
}

// add holds more bytes, or fewer.
func (h *Holder) add(bytes int64) {
	h.held += bytes
	h.budget.held += bytes
	for _, s := range h.shares {
		s.held += bytes
	}
}

// Take holds more bytes. It waits for them for two seconds at most, and not if too many wait already. Errors: RateLimited where a
// share of the holder is used up, Overloaded where the node has no room; the context's.
func (h *Holder) Take(ctx context.Context, bytes int64) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errPatience)
	defer cancel()
	return h.take(ctx, bytes, maxWaiting)
}

// TryTake is Take, and never waits.
func (h *Holder) TryTake(bytes int64) error { return h.take(context.Background(), bytes, 0) }

// Await is Take for streams, which wait until their context ends.
func (h *Holder) Await(ctx context.Context, bytes int64) error { return h.take(ctx, bytes, -1) }

var errPatience = errors.New("budget: no memory became free in time")

// take waits if fewer than the given number of requests wait already. With -1 it always waits, and does not count as a request.
func (h *Holder) take(ctx context.Context, bytes int64, waiting int) error {
	b := h.budget
	b.mu.Lock()
	full := h.full(bytes)
	if full == nil {
		h.add(bytes)
		b.mu.Unlock()
		return nil
	}
	request := waiting >= 0
	if request && b.limited >= waiting {
		b.refused++
		b.mu.Unlock()
		return refusal(full)
	}
	w := &waiter{holder: h, bytes: bytes, ready: make(chan struct{})}
	b.waiting = append(b.waiting, w)
	if request {
		b.limited++
	}
	b.mu.Unlock()
	select {
	case <-w.ready:
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if request {
		b.limited--
	}
	if i := slices.Index(b.waiting, w); i >= 0 {
		b.waiting = slices.Delete(b.waiting, i, i+1)
		if context.Cause(ctx) != errPatience {
			return ctx.Err()
		}
		b.refused++
		return refusal(full)
	}
	return nil
}

func refusal(s *Share) error {
	if s.Whose == "" {
		return workflow.Errorf(workflow.Overloaded, "the node has no memory for this request now")
	}
	return workflow.Errorf(workflow.RateLimited, "%s uses as much of the node's memory as it may; finish other requests first", s.Whose)
}

// Free holds fewer bytes.
func (h *Holder) Free(bytes int64) {
	b := h.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	h.add(-bytes)
	b.grant()
}

// Done frees everything. The holder must not be used any more.
func (h *Holder) Done() {
	b := h.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	h.add(-h.held)
	for _, s := range h.shares {
		if s.users--; s.users == 0 {
			delete(b.shares, s.Key)
		}
	}
	b.grant()
}

// grant gives free memory to the waiters, in order. A waiter that needs more than is free is passed over.
func (b *Budget) grant() {
	b.waiting = slices.DeleteFunc(b.waiting, func(w *waiter) bool {
		if w.holder.full(w.bytes) != nil {
			return false
		}
		w.holder.add(w.bytes)
		close(w.ready)
		return true
	})
}
