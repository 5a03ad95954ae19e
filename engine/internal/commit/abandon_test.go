package commit

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/transitions"
)

// The operation has a position in the log; the scheduled command that it abandons has none. Awaiting that returns the bytes of its replays.
func TestAwaitAbandoned_EqualsReplay(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	id := b.opened()
	later, err := decide.Prepare(transitions.Command{Key: "later", Workflow: "deal", Transition: "cancel", Instance: id,
		Payload: []byte(`{"text":"later"}`), Options: transitions.Options{NotBefore: b.now.Add(time.Hour)}}, b.w, uuid.New)
	require.NoError(t, err)
	b.one(later)
	_, err = b.pool.Exec(t.Context(), `UPDATE pawl.command SET status = 'failed_retryable', run_at = NULL, stuck = 'undecidable'
		WHERE key = 'later'`)
	require.NoError(t, err)
	abandon, err := decide.Operate(transitions.Command{Key: "abandon", Workflow: "deal", Instance: id},
		transitions.Operation{Action: transitions.Abandon, Target: transitions.CommandRef{Scope: later.Scope, Key: later.Key}})
	require.NoError(t, err)
	done := b.one(abandon)
	assert.NotEqual(t, int64(0), done.Position, "the operation has no place in the log")
	list := b.worker.landed("later")
	told := list[len(list)-1].Receipt
	require.NotNil(t, told, "who awaits it is told nothing")
	replay := b.one(later)
	assert.Truef(t, string(told.Body) == string(replay.Body) && told.Position == replay.Position && told.Status == replay.Status &&
		told.Version == replay.Version,
		"told:     %d %s\nreplayed: %d %s", told.Position, told.Body, replay.Position, replay.Body)
}
