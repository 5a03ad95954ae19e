package stream

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/transitions"
)

// To hand a batch to a subscriber copies the bytes that the node has made once, and allocates
// nothing, however many events it has.
func TestADeliveryAllocatesNothing(t *testing.T) {
	server, client := socketPair(t)
	go func() { _, _ = io.Copy(io.Discard, client.NetConn()) }()
	w, _ := newTestWriter(server, time.Minute)
	for _, m := range []message{{id: "all"}, {id: "some", selected: selection{transitions.EventFilter{Types: []string{"even"}}}}} {
		p := newPump(m)
		for _, n := range []int{1, 100} {
			b := transitions.Batch{Last: int64(n), Head: int64(n)}
			for i := range n {
				b.Events = append(b.Events, transitions.Logged{Event: transitions.Event{Position: int64(i) + 1, Type: []string{"even", "odd"}[i%2]},
					CloudEvent: []byte(`"` + strings.Repeat("x", 500) + `"`)})
			}
			if got := testing.AllocsPerRun(200, func() {
				assert.NoError(t, w.put(outgoing{pump: p, batch: b}))
			}); got >= 1 {
				t.Errorf("to write %d events to the subscription %q allocates %.0f times", n, m.id, got)
			}
		}
	}
}
