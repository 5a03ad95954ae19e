package notify

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// On a busy machine no notification may be lost.
func init() { sendTimeout = time.Minute }

func FuzzParse(f *testing.F) {
	all := pending{heads: map[string]int64{"acme corp": 7, "": -1}, commands: []uint64{1, 1 << 63},
		due: true, sinks: true, begins: true}
	for _, p := range all.payloads("node") {
		f.Add(p)
	}
	f.Add("x c !")
	f.Add("x h 12")
	f.Fuzz(func(t *testing.T, payload string) {
		h, ok := parse(payload)
		if !ok {
			return
		}
		n := pending{commands: slices.Clone(h.commands), due: h.topic == dueTopic, sinks: h.topic == sinksTopic,
			begins: h.topic == beginsTopic}
		if h.topic == headTopic {
			n.heads = map[string]int64{h.tenant: h.head}
		}
		again := pending{heads: map[string]int64{}}
		for _, p := range n.payloads(h.node) {
			assert.Falsef(t, len(h.commands) <= pieceSize && len(p) > len(payload)+20, "%q became %q", payload, p)
			told, ok := parse(p)
			require.Truef(t, ok && told.node == h.node && told.topic == h.topic, "%q became %q, which reads %+v", payload, p, told)
			if told.topic == headTopic {
				again.heads[told.tenant] = told.head
			}
			again.commands = append(again.commands, told.commands...)
		}
		slices.Sort(h.commands)
		assert.Truef(t, slices.Equal(again.commands, slices.Compact(h.commands)) && (n.heads == nil || maps.Equal(again.heads, n.heads)),
			"%q became %+v", payload, again)
	})
}

func TestPayloadsFitPostgreSQLsLimit(t *testing.T) {
	n := pending{commands: make([]uint64, 3*pieceSize+1)}
	for i := range n.commands {
		n.commands[i] = ^uint64(0) - uint64(i)
	}
	list := n.payloads(New(Config{}).node)
	assert.Len(t, list, 4, "payloads")
	for _, p := range list {
		assert.Truef(t, len(p) < 8000, "%d bytes", len(p))
	}
}

func TestPendingIsBounded(t *testing.T) {
	x := New(Config{})
	for range 10 {
		x.Changed(make([]uint64, maxPending/3))
	}
	assert.Equal(t, maxPending, len(x.takePending().commands), "hashes wait")
}
