package feed

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
		require.Truef(t, tl.bytes <= 2*ringBytes+2*size && tl.bytes == sizeOf(tl.ring),
			"after position %d the ring counts %d bytes and has %d", position, tl.bytes, sizeOf(tl.ring))
		require.Falsef(t, len(tl.ring) > 0 && (tl.ring[0].Ordinal != 0 || tl.ring[0].Position != tl.first+1),
			"after position %d the ring begins with event %d of %d, after %d", position, tl.ring[0].Ordinal, tl.ring[0].Position, tl.first)
		for i, e := range before { // the part a follower may be reading
			want := first + 1 + int64(i/2)
			require.Equalf(t, want, e.Position, "event %d of a ring that was given out is of position now", i)
		}
	}
	assert.Truef(t, tl.first != 0 && tl.last == 500, "the ring is from %d to %d", tl.first, tl.last)
	batch, inRing, _ := tl.read(tl.first)
	assert.Truef(t, inRing && len(batch.Events) == len(tl.ring) && batch.Last == 500,
		"read %d events up to %d; in the ring: %v", len(batch.Events), batch.Last, inRing)
	_, inRing, _ = tl.read(tl.first - 1)
	assert.False(t, inRing, "a position before the ring is taken to be in it")
}

func TestLargeEventsReduceReadSize(t *testing.T) {
	p := pager{limit: 512}
	for _, c := range []struct{ size, want int }{{readBytes * 512, 1}, {readBytes, 512}, {4 * readBytes, 128}, {1, 512}} {
		p.limit = 512
		p.fit(c.size)
		assert.Equalf(t, c.want, p.limit, "after a read of %d bytes the next is of transitions", c.size)
	}
}
