package commit

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/testkit/await"
)

// A connection costs the server so much when it is opened, and when it ends, that others feel it. One command at a time, which waits for
// a lock, takes one of the committers and one of the retry lane, whoever of them has it.
func TestOneCommandAtATimeTakesOneConnectionOfEach(t *testing.T) {
	b := newBench(t, func(c *Config) { c.Limits.Committers, c.Limits.RetryWorkers = 4, 4 })
	id := b.opened()
	for i := range 12 {
		release := b.hold("SELECT FROM pawl.instance FOR UPDATE")
		answer := b.submit(t.Context(), b.command("remind", fmt.Sprint(i), id))
		await.Eventually(t, "it waits aside", func() bool { aside, _, _ := b.waiting(); return aside.n == 1 })
		release()
		require.NoError(t, await.Receive(t, "it is done", answer))
		for _, s := range []*runners{b.p.committers, b.p.retries} {
			await.Eventually(t, "nobody has a connection", func() bool { return len(s.open)+len(s.closed) == cap(s.open) })
		}
	}
	if c, r := len(b.p.committers.open), len(b.p.retries.open); c != 1 || r != 1 {
		t.Errorf("%d and %d are open", c, r)
	}
}
