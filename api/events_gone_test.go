package api_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// A reader that is too late gets the oldest position, before any stream starts.
func TestEventsThatRetentionHasRemovedAreGone(t *testing.T) {
	s := newServer(t)
	s.someEvents()
	_, err := s.pool.Exec(t.Context(), "DELETE FROM pawl.outbox WHERE position <= 2")
	require.NoError(t, err)
	for _, headers := range [][]string{nil, {"Accept", "text/event-stream"}} {
		for _, after := range []string{"0", "1"} {
			a := s.get("/v1/events?after="+after, headers...)
			a.wantProblem(t, 410, workflow.EventsGone)
			p := read[transitions.Problem](t, a)
			assert.Equalf(t, int64(3), p.Position, "after %s: %+v", after, p)
		}
	}
	s.get("/v1/events?after=2").want(t, 200)
}

// The start is the oldest retained event, or the next one if there is none, so a new reader misses nothing that was removed. A reader that
// names a position is told if events after it are gone.
func TestTheStartIsTheOldestEventThatIsThere(t *testing.T) {
	s := newServer(t)
	s.someEvents()
	c := s.dial()
	for _, tt := range []struct {
		removed, after int64
		ids            []string
	}{{2, 2, []string{"3-0", "3-1", "3-2", "4-0", "4-1", "4-2"}}, {4, 4, nil}} {
		_, err := s.pool.Exec(t.Context(), "DELETE FROM pawl.outbox WHERE position <= $1", tt.removed)
		require.NoError(t, err)
		for _, query := range []string{"", "?after=start"} {
			a := s.get("/v1/events" + query)
			a.want(t, 200)
			page := read[wire.Events](t, a)
			ids := idsOf(t, page)
			assert.Truef(t, slices.Equal(ids, tt.ids) && page.NextAfter == 4 && page.Head == 4, "%q: %q, %+v", query, ids, page)
		}
		if len(tt.ids) > 0 {
			e, end := s.source("/v1/events")
			e.until(func() bool { return len(e.seen) == len(tt.ids) })
			end()
			assert.Truef(t, slices.Equal(e.seen, tt.ids), "as a stream: %q", e.seen)
		}
		id := fmt.Sprint("s", tt.after)
		m := c.subscribe(id, `"start"`, `{}`)
		assert.Equal(t, tt.after, m.After, "subscribed after")
		ids, caughtUp := c.events("caught_up")
		assert.Truef(t, slices.Equal(ids, tt.ids) && caughtUp.Position == 4, "%q, then %+v", ids, caughtUp)
	}
}
