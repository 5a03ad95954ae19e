package feed

import (
	"slices"
	"time"

	"github.com/pawlhq/pawl/transitions"
)

const (
	handedBytes = 4 << 20          // of events that wait to be taken into a ring, about; what is more is read from the table
	handedWait  = time.Millisecond // for a commit that comes before one which was announced first
)

// handed are the events of this node's commits as their pipeline has them: they are taken
// into the ring without being read. The commits of several committers may be announced
// in another order than theirs.
type handed struct {
	pieces [][]transitions.Event // each of one commit
	bytes  int
}

// add takes in the events of a commit, if there is room.
func (h *handed) add(events []transitions.Event) {
	size := 0
	for i := range events {
		size += len(events[i].Payload)
	}
	if h.bytes+size <= handedBytes {
		h.pieces, h.bytes = append(h.pieces, events), h.bytes+size
	}
}

// take takes the events that come directly after a position, and drops what is not after
// it. later reports whether there are others, behind some that are missing.
func (h *handed) take(last int64) (events []transitions.Event, later bool) {
	slices.SortFunc(h.pieces, func(a, b []transitions.Event) int { return int(a[0].Position - b[0].Position) })
	n := 0
	for ; n < len(h.pieces) && h.pieces[n][0].Position <= last+1; n++ {
		for _, e := range h.pieces[n] {
			h.bytes -= len(e.Payload)
		}
		piece := h.pieces[n]
		known := 0
		for known < len(piece) && piece[known].Position <= last {
			known++
		}
		if piece = piece[known:]; len(piece) > 0 {
			events, last = append(events, piece...), piece[len(piece)-1].Position
		}
	}
	h.pieces = slices.Delete(h.pieces, 0, n)
	return events, len(h.pieces) > 0
}

// hand takes in a commit of this node, up to head. events gives those of the commit.
func (t *tail) hand(head int64, events func() []transitions.Event) {
	t.mu.Lock()
	wanted := events != nil && t.begun && t.handed.bytes < handedBytes
	t.mu.Unlock()
	if wanted {
		if list := events(); len(list) > 0 {
			t.mu.Lock()
			t.handed.add(list)
			t.mu.Unlock()
		}
	}
	t.wake(head)
}

// takeHanded grows the ring by what was handed over, and reports whether there was any.
// Where something is missing before it, it waits for a moment: another committer of this node
// may be about to announce it. Otherwise another node has committed it, and it has to be read.
func (t *tail) takeHanded() bool {
	for deadline := (<-chan time.Time)(nil); ; {
		t.mu.Lock()
		events, later := t.handed.take(t.last)
		t.mu.Unlock()
		if len(events) > 0 {
			for i := range events {
				events[i].Source = t.f.config.Log.Source()
			}
			t.grow(render(events))
			return true
		}
		if !later {
			return false
		}
		if deadline == nil {
			deadline = time.After(handedWait)
		}
		select {
		case <-t.woken:
		case <-deadline:
			return false
		case <-t.ctx.Done():
			return false
		}
	}
}
