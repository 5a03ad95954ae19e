package relay_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/outbox/relay"
	"github.com/pawlhq/pawl/transitions"
)

// A log is read and delivered in its turn even if many other tenants wait for memory.
func TestWaitingTenantsDoNotBlockReaders(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	pool := poolOf(t, url, nil)
	const tenants = 60
	for i := range tenants {
		publish(t, pool, fmt.Sprintf("big-%02d", i), strings.Repeat("abcde", 8))
	}
	gate, read, busy := make(chan struct{}), make(chan string, 1000), make(chan struct{}, 2)
	to := &receiver{enter: func(ctx context.Context, _ []transitions.Logged) {
		select {
		case busy <- struct{}{}:
		default:
		}
		select {
		case <-gate:
		case <-ctx.Done():
		}
	}}
	n := startNode(t, url, quick("main", to, func(s *relay.Sink) {
		s.Window, s.Calls, s.Batch = 64, 2, 1
		s.Wants = func(e *transitions.Event) bool {
			if e.Position == 1 {
				read <- e.Tenant
			}
			return true
		}
	}))
	for range 2 {
		<-busy // nothing is delivered from now on
	}
	publish(t, pool, "small", "a", n)
	for seen := map[string]bool{}; len(seen) < tenants+1; {
		select {
		case name := <-read:
			seen[name] = true
		case <-time.After(patience):
			t.Fatalf("%d tenants' logs are read, the small one's: %v", len(seen), seen["small"])
		}
	}
	close(gate)
	cursorReaches(t, pool, "main", "small", 1)
	for i := range tenants {
		cursorReaches(t, pool, "main", fmt.Sprintf("big-%02d", i), 40)
	}
	to.inOrder(t)
}
