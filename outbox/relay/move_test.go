package relay_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/outbox/relay"
	"github.com/pawlhq/pawl/transitions"
)

// A delivery in progress during a move ends before other events of its instance are delivered, and
// its result does not overwrite the move.
func TestMoveWaitsForDeliveries(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	inside, goOn := make(chan string, 100), make(chan struct{})
	to := refuses("7-0") // would become a dead letter
	n := startNode(t, url, quick("main", to))
	head := publish(t, n.pool, tenant, "aabbab", n)
	cursorReaches(t, n.pool, "main", tenant, head)
	to.set(func(r *receiver) {
		r.enter = func(_ context.Context, batch []transitions.Logged) {
			if batch[0].Instance == instanceOf('a') {
				inside <- batch[0].ID()
				<-goOn
			}
		}
	})
	publish(t, n.pool, tenant, "a", n)
	require.Equal(t, "7-0", await.Receive(t, "the delivery begins", inside))
	before := len(to.ids('a'))
	require.NoError(t, relay.NewTable(n.pool, same).Move(t.Context(), "main", tenant, 1, "ann", ""))
	n.Wake()
	eventually(t, "the log is read anew", func() bool { return len(to.ids('b')) == 2*3 })
	got := to.ids('a')
	assert.Lenf(t, got, before, "meanwhile of the same instance came %v", got[before:])
	assert.Equal(t, int64(1), cursor(t, n.pool, "main", tenant), "the cursor is at")
	assert.Equal(t, int64(0), number(t, n.pool, "SELECT count(*) FROM pawl.outbox_dead"), "rows are deferred")
	close(goOn)
	cursorReaches(t, n.pool, "main", tenant, 7)
	got = to.ids('a')[before:]
	assert.Truef(t, slices.Equal(got, []string{"2-0", "5-0", "5-1"}), "after it of the same instance came %v", got)
	mustEqual(t, "dead letters", deadLetters(t, relay.NewTable(n.pool, same), inspect.DeadFilter{Sink: "main"}), []string{"7-0"})
	to.inOrder(t)
}
