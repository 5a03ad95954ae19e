package engine_test

import (
	"maps"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/transitions"
)

// followTo reads a follower up to a position.
func followTo(t *testing.T, f transitions.Follower, last, position int64) (events []transitions.Logged) {
	t.Helper()
	for last < position {
		batch, err := f.Next(t.Context())
		require.NoError(t, err)
		events, last = append(events, batch.Events...), batch.Last
	}
	return events
}

// A follower gets the events of this node's commits from the pipeline. Reading them from the table gives the same bytes.
func TestEventsAreFollowedAsTheyAreStored(t *testing.T) {
	t.Parallel()
	pool := database(t)
	// All events are followed, none is read from the table.
	e := newEngine(t, pool, func(c *engine.Config) {
		c.Source = "/here"
		c.Now = func() time.Time { return time.Now().In(time.FixedZone("", 3600)) }
	})
	submit(t, e, applied("L-1", 5))
	live := e.Read().Follow(transitions.DefaultTenant, 0)
	defer live.Close()
	got := followTo(t, live, 0, 1)
	for _, c := range []transitions.Command{applied("L-2", 7), applied("L-<&>é\u2028", 7),
		on("pay", "L-1", "1", 2, ""), on("pay", "L-1", "2", 3, ""),
		{Workflow: "loan", Transition: "walk-in", Key: uuid.NewString(), Payload: []byte(`{"number":"9","amount":1.0}`)}} {
		submit(t, e, c)
	}
	for _, action := range []transitions.Action{transitions.Pause, transitions.Resume} {
		c := transitions.Command{Key: string(action), Instance: loanID("L-2"), Actor: "op"}
		if r, err := e.Admin().Operate(t.Context(), c, transitions.Operation{Action: action, Reason: "because"}); err != nil || r.Refused() {
			t.Fatal(r, err)
		}
	}
	head, err := e.Read().Head(t.Context(), transitions.DefaultTenant)
	require.NoError(t, err)
	got = append(got, followTo(t, live, 1, head)...)

	late := newEngine(t, pool, func(c *engine.Config) { c.Source = "/here" }).Read().Follow(transitions.DefaultTenant, 0)
	defer late.Close()
	want := followTo(t, late, 0, head)
	require.Truef(t, len(got) == len(want) && len(want) >= int(head)+1,
		"%d events are followed, and %d are stored of %d transitions", len(got), len(want), head)
	for i := range want {
		g, w := &got[i], &want[i]
		assert.Truef(t, string(g.CloudEvent) == string(w.CloudEvent) && maps.Equal(g.Attributes, w.Attributes) && g.Position == w.Position,
			"event %s is followed as\n%s, %v\nand stored as\n%s, %v", w.ID(), g.CloudEvent, g.Attributes, w.CloudEvent, w.Attributes)
	}
}
