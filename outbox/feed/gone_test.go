package feed_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/workflow"
)

// Reading removed events fails with the position where the log continues, whether all or some are
// removed, at the front or in between.
func TestEventsGoneReportsNextPosition(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, gone   string
		after, first int64
	}{
		{"the oldest", "position <= 30", 0, 31}, {"the oldest, from within", "position <= 30", 29, 31},
		{"some in between", "position BETWEEN 11 AND 40", 10, 41}, {"all", "true", 0, 101}, {"all, from within", "true", 99, 101},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n := startNode(t, pgtest.URL(t), true)
			n.publish(t, 100)
			if _, err := n.pool.Exec(t.Context(), "DELETE FROM pawl.outbox WHERE "+tt.gone); err != nil {
				t.Fatal(err)
			}
			r := n.reader(t, tt.after)
			batch, err := r.f.Next(t.Context())
			e, ok := err.(*workflow.Error)
			require.Truef(t, ok && e.Code == workflow.EventsGone && e.Position == tt.first &&
				strings.Contains(e.Message, fmt.Sprint("continue after ", tt.first-1)),
				"%+v, %v", batch, err)
			err = n.Readable(t.Context(), tenant, tt.after)
			assert.Equalf(t, workflow.EventsGone, workflow.CodeOf(err), "readable: %v", err)
			for _, after := range []int64{tt.first - 1, 100, 200} {
				assert.NoErrorf(t, n.Readable(t.Context(), tenant, after), "readable after %d", after)
			}
			onward := n.reader(t, tt.first-1)
			onward.mustReadTo(t, n.publish(t, 10))
		})
	}
}

// Events before the gap are read first.
func TestEventsBeforeGapAreRead(t *testing.T) {
	t.Parallel()
	n := startNode(t, pgtest.URL(t), true)
	n.publish(t, 30)
	_, err := n.pool.Exec(t.Context(), "DELETE FROM pawl.outbox WHERE position BETWEEN 11 AND 20")
	require.NoError(t, err)
	r := n.reader(t, 0)
	r.mustReadTo(t, 10)
	_, err = r.f.Next(t.Context())
	assert.Equal(t, workflow.EventsGone, workflow.CodeOf(err), err)
}
