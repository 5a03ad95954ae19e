package feed

import (
	"testing"

	"github.com/pawlhq/pawl/transitions"
)

func logged(position int64, ordinal, size int) transitions.Logged {
	return transitions.Logged{Event: transitions.Event{Position: position, Ordinal: ordinal, Payload: make([]byte, size/2)},
		CloudEvent: make([]byte, size/2)}
}

func TestRingIsBoundedInBytes(t *testing.T) {
	tl := &tail{begun: true, changed: make(chan struct{})}
	const size = 1 << 20
	for position := int64(1); position <= 500; position++ {
		before := tl.ring
		first := tl.first
		tl.grow([]transitions.Logged{logged(position, 0, size), logged(position, 1, size)})
		if tl.bytes > 2*ringBytes+2*size || tl.bytes != sizeOf(tl.ring) {
			t.Fatalf("after position %d the ring counts %d bytes and has %d", position, tl.bytes, sizeOf(tl.ring))
		}
		if len(tl.ring) > 0 && (tl.ring[0].Ordinal != 0 || tl.ring[0].Position != tl.first+1) {
			t.Fatalf("after position %d the ring begins with event %d of %d, after %d", position, tl.ring[0].Ordinal, tl.ring[0].Position, tl.first)
		}
		for i, e := range before { // the part a follower may be reading
			if want := first + 1 + int64(i/2); e.Position != want {
				t.Fatalf("event %d of a ring that was given out is of position %d now, not %d", i, e.Position, want)
			}
		}
	}
	if tl.first == 0 || tl.last != 500 {
		t.Errorf("the ring is from %d to %d", tl.first, tl.last)
	}
	batch, inRing, _ := tl.read(tl.first)
	if !inRing || len(batch.Events) != len(tl.ring) || batch.Last != 500 {
		t.Errorf("read %d events up to %d; in the ring: %v", len(batch.Events), batch.Last, inRing)
	}
	if _, inRing, _ = tl.read(tl.first - 1); inRing {
		t.Error("a position before the ring is taken to be in it")
	}
}

func TestLargeEventsReduceReadSize(t *testing.T) {
	p := pager{limit: 512}
	for _, c := range []struct{ size, want int }{{readBytes * 512, 1}, {readBytes, 512}, {4 * readBytes, 128}, {1, 512}} {
		p.limit = 512
		p.fit(c.size)
		if p.limit != c.want {
			t.Errorf("after a read of %d bytes the next is of %d transitions; want %d", c.size, p.limit, c.want)
		}
	}
}
