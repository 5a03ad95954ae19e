package feed

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/transitions"
)

// commitOf returns the events of a commit, two per position.
func commitOf(from, to int64) (list []transitions.Event) {
	for p := from; p <= to; p++ {
		list = append(list, transitions.Event{Position: p}, transitions.Event{Position: p, Ordinal: 1, Payload: make([]byte, 10)})
	}
	return list
}

// Commits may be announced in any order, and partly be read meanwhile: the events that are taken
// directly follow the ring.
func TestLocalCommitsAreTakenInOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 1000 {
		var commits [][]transitions.Event
		head := int64(0)
		for range 6 {
			next := head + 1 + random.Int64N(3)
			commits = append(commits, commitOf(head+1, next))
			head = next
		}
		random.Shuffle(len(commits), func(i, j int) { commits[i], commits[j] = commits[j], commits[i] })
		var h localCommits
		last := int64(0)
		for i, c := range commits {
			h.add(c)
			if random.IntN(4) == 0 && last < head { // read from the table
				last += 1 + random.Int64N(head-last)
			}
			events, later := h.takeNext(last)
			for k := range events {
				if want := last + 1 + int64(k/2); events[k].Position != want || events[k].Ordinal != k%2 {
					t.Fatalf("event %d is %d-%d, want %d-%d", k, events[k].Position, events[k].Ordinal, want, k%2)
				}
			}
			last += int64(len(events) / 2)
			require.Falsef(t, i == len(commits)-1 && (last != head || later || h.bytes != 0 || len(h.pieces) != 0),
				"at %d of %d in the end, with %d bytes", last, head, h.bytes)
		}
	}
}

func TestLocalCommitsAreBounded(t *testing.T) {
	var h localCommits
	for p := int64(2); p < 100; p++ {
		h.add([]transitions.Event{{Position: p, Payload: make([]byte, 1<<20)}})
	}
	_, later := h.takeNext(0)
	assert.Truef(t, later && h.bytes <= localBytes && len(h.pieces) == 4, "%d pieces with %d bytes are kept", len(h.pieces), h.bytes)
}
