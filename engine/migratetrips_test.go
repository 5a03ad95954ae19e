package engine_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/workflow"
)

// claimsBack is version 1 with a plan that leads back to it.
func claimsBack() *workflow.Definition[claim1] {
	return claims1(pays).Migrate(workflow.FromVersion(2, func(now claim2) (claim1, error) { return claim1{Sum: now.Cents / 100}, nil }).
		State("checking", "open").State("approved", "open").KeepTimer("release"))
}

// The same instances go there, back, and there again, while callers ask for all that there is, each under one version or the other.
func TestInstancesGoThereAndBackAndThereAgain(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e := bothClaims(t, pool, claimsBack(), claims2(pays))
	const all = 40
	var ids []uuid.UUID
	for i := range all {
		ids = append(ids, file(t, e, "", fmt.Sprint(i), i).Instance)
		later := onClaim(ids[i], "hold", "later")
		later.NotBefore = time.Now().Add(time.Hour)
		require.NoError(t, errOf(e.Submit(t.Context(), later)))
	}
	first := file(t, e, "", "0", 0)
	moves := moveClaims(t, e, ids)
	for turn, to := range []int{2, 1, 2} {
		m, err := e.Admin().MigrateInstances(t.Context(), inspect.MigrationRequest{Workflow: "claim", From: 3 - to, To: to, Actor: "ann",
			Reason: "a turn", PerSecond: 100})
		require.NoError(t, err)
		m = migrated(t, e, m.ID)
		assert.Truef(t, m.Migrated == all && m.Skipped+m.Rejected == 0, "turn %d: %+v", turn, m)
	}
	done := moves()
	n := query[int](t, pool, `SELECT count(*) FROM pawl.instance i WHERE definition = 2 AND version = 4 +
		(SELECT count(*) FROM pawl.audit a WHERE a.instance = i.id AND a.transition IN ('hold', 'release'))`)
	assert.Equal(t, all, n, "instances are as they should be")
	assert.Equal(t, done, query[int64](t, pool, "SELECT count(*) FROM pawl.audit WHERE transition IN ('hold', 'release')"),
		"done, and callers heard of")
	if n := query[int](t, pool, "SELECT count(*) FROM pawl.command WHERE phase IS NOT NULL AND definition = 2 AND key = 'later'"); n != all {
		t.Errorf("%d of what is scheduled went along, want %d", n, all)
	}
	// What is held has its timer, and nothing else has one.
	n = query[int](t, pool, `SELECT count(*) FROM pawl.instance i WHERE (state = 'held')::int <> (SELECT count(*) FROM pawl.command c
		WHERE starts_with(c.scope, 'pawl:timer:' || i.id) AND c.phase IS NOT NULL AND c.definition = 2)`)
	assert.Equal(t, 0, n, "have timers that they should not have, or lack one")
	again := file(t, e, "", "0", 0)
	assert.Truef(t, again.Replayed && string(again.Body) == string(first.Body), "%s, then %s", first.Body, again.Body)
	wantIntact(t, e, "")
}

// moveClaims has callers hold and release claims until the function returned is called, which tells how often they did.
func moveClaims(t *testing.T, e *engine.Engine, ids []uuid.UUID) func() int64 {
	t.Helper()
	var over atomic.Bool
	var done atomic.Int64
	var work sync.WaitGroup
	for caller := range 4 {
		work.Go(func() {
			for n := 0; !over.Load(); n++ {
				name := []string{"hold", "release"}[n/len(ids)%2]
				r, err := e.Submit(t.Context(), onClaim(ids[(n+caller*7)%len(ids)], name, fmt.Sprint(caller, "-", n)))
				if err == nil && r.Err() == nil {
					done.Add(1)
				} else if code := workflow.CodeOf(err); err != nil && !code.Info().Retry {
					t.Errorf("%s: %v", name, err)
				}
				await.Pass("callers leave some of the machine", 2*time.Millisecond)
			}
		})
	}
	return func() int64 { over.Store(true); work.Wait(); return done.Load() }
}

// Retention has deleted an instance between the moment when its page was written and the one when it is asked for.
func TestAMigrationPassesWhatIsDeletedMeanwhile(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e := bothClaims(t, pool)
	gone := file(t, e, "", "gone", 1).Instance
	file(t, e, "", "stays", 1)
	exec(t, pool, `CREATE FUNCTION delete_one() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
		IF NEW.page IS NOT NULL THEN
			DELETE FROM pawl.command WHERE instance = TG_ARGV[0]::uuid;
			DELETE FROM pawl.instance WHERE id = TG_ARGV[0]::uuid;
		END IF; RETURN NULL; END $$`)
	exec(t, pool, fmt.Sprintf(`CREATE TRIGGER delete_one AFTER UPDATE ON pawl.instance_migration FOR EACH ROW
		EXECUTE FUNCTION delete_one('%s')`, gone))
	m := migrated(t, e, begun(t, e, 1000).ID)
	assert.Truef(t, m.Expected == 2 && m.Migrated == 1 && m.Rejected == 0, "%+v", m)
}
