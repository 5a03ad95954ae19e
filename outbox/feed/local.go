package feed

import (
	"slices"
	"time"

	"github.com/pawlhq/pawl/transitions"
)

const (
	localBytes = 4 << 20          // approximate size of commits waiting for the ring; more are read from the table
	localWait  = time.Millisecond // for an earlier commit that is announced late
)

// localCommits collects the events of this node's commits, which are added to the ring without being
// read. Concurrent committers may announce them out of order.
type localCommits struct {
	pieces [][]transitions.Event // one per commit
	bytes  int
}

func (h *localCommits) add(events []transitions.Event) {
	size := 0
	for i := range events {
		size += len(events[i].Payload)
	}
	if h.bytes+size <= localBytes {
		h.pieces, h.bytes = append(h.pieces, events), h.bytes+size
	}
}

// takeNext removes and returns the events directly after a position and drops earlier ones. later
// reports whether others remain behind a gap.
func (h *localCommits) takeNext(last int64) (events []transitions.Event, later bool) {
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

// takeLocal adds local commits to the ring and reports whether there were any. At a gap it waits
// briefly for another committer of this node; otherwise another node has committed the missing
// events, which must be read.
func (t *tail) takeLocal() bool {
	for deadline := (<-chan time.Time)(nil); ; {
		t.mu.Lock()
		events, later := t.localCommits.takeNext(t.last)
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
			deadline = time.After(localWait)
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
