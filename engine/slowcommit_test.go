package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// As with a synchronous standby that is stalled: when the accept becomes visible
// its lease has run out, and all workers are alive.
func TestSlowCommit_ExecutedOnce(t *testing.T) {
	t.Parallel()
	pool := database(t)
	// It waits for no lock, which would end by the committer's lock_timeout.
	exec(t, pool, `CREATE FUNCTION stalled() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		WHILE NOT pg_try_advisory_xact_lock_shared(7) LOOP PERFORM pg_sleep(0.05); END LOOP; RETURN NULL; END $$`)
	exec(t, pool, `CREATE CONSTRAINT TRIGGER stalled AFTER INSERT ON pawl.command DEFERRABLE INITIALLY DEFERRED
		FOR EACH ROW WHEN (NEW.phase = 'working') EXECUTE FUNCTION stalled()`)
	const lease, count = 4 * time.Second, 10
	begun, done := make(chan string, 4*count), make(chan struct{})
	w := parcels(func(_ context.Context, a *workflow.Attempt) (track, error) {
		begun <- a.Key
		<-done // whatever its context says, as a call that is under way
		return track{Number: "1"}, nil
	})
	short := func(c *engine.Config) { c.InFlight.Lease = lease }
	a, b := newEngine(t, pool, with(w), short), newEngine(t, pool, with(w), short)
	looks := func(more int64) {
		from := [2]int64{a.Admin().InFlightStats().Polls, b.Admin().InFlightStats().Polls}
		eventually(t, "both nodes look", func() bool {
			return a.Admin().InFlightStats().Polls >= from[0]+more && b.Admin().InFlightStats().Polls >= from[1]+more
		})
	}
	var sends []transitions.Command
	for i := range count {
		r := submit(t, a, transitions.Command{Workflow: "parcel", Transition: "pack", Key: string(rune('a' + i))})
		sends = append(sends, transitions.Command{Workflow: "parcel", Transition: "send", Key: "send", Instance: r.Instance})
	}
	looks(int64(lease/time.Second) + 2) // so that b trusts what it sees

	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	defer rollback(t, tx)
	_, err = tx.Exec(t.Context(), "SELECT pg_advisory_xact_lock(7)")
	require.NoError(t, err)
	accepted := make(chan []transitions.Reply, 1)
	go func() { accepted <- a.SubmitMany(context.Background(), sends) }()
	eventually(t, "the commit is stalled", func() bool {
		return query[int](t, pool, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'") > 0
	})
	looks(int64(lease/time.Second) + 2) // the leases run out meanwhile
	rollback(t, tx)

	replies := await.Receive(t, "they are accepted", accepted)
	for range count {
		await.Receive(t, "each is begun", begun)
	}
	looks(4)
	close(done)
	for i, r := range replies {
		require.NoError(t, r.Err)
		end, err := a.Await(t.Context(), transitions.Ref{Scope: r.Receipt.Record.Scope, Key: sends[i].Key})
		assert.Truef(t, err == nil && !end.Refused(), "it ended with %+v, %v", end, err)
	}
	assert.Empty(t, begun, "executed once more")
}
