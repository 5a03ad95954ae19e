package replay_test

import (
	"os"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/examples/fines"
	"github.com/pawlhq/pawl/examples/fines/replay"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/workflow"
)

// All cases of a log that are open go to version 2: each once, with a chain that verifies; and every key of before, sent again by two
// callers, has its answer of before.
func TestReplay_Migration(t *testing.T) {
	t.Parallel()
	migrateAll(t, log)
}

// PAWL_FULL=1 takes the whole log: half a million commands, twice.
func TestOpenCasesOfTheRealLogGoToAnotherVersion(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	events := int64(60_000)
	if os.Getenv("PAWL_FULL") == "1" {
		events = 0
	}
	real, err := replay.Find(os.Getenv("PAWL_DATA"), events)
	require.NoError(t, err)
	migrateAll(t, real)
}

func migrateAll(t *testing.T, log replay.Log) {
	t.Helper()
	pool := pgtest.Pool(t)
	e, err := engine.New(engine.Config{Pool: pool, Workflows: []workflow.Source{fines.Workflow, fines.Version2}})
	require.NoError(t, err)
	require.NoError(t, e.Start(t.Context()))
	defer e.Stop(t.Context())
	require.NoError(t, e.Admin().BeginVersion(t.Context(), "fine", 1, ""))
	played := func() *replay.Report {
		report, err := replay.Run(t.Context(), replay.Config{Log: log, Targets: []replay.Target{e}})
		if err == nil {
			err = report.Err()
		}
		require.NoError(t, err, report)
		return report
	}
	first := played()
	var open int64
	err = pool.QueryRow(t.Context(), "SELECT count(*) FROM pawl.instance WHERE open").Scan(&open)
	require.Truef(t, err == nil && open != 0, "%d, %v", open, err)
	m, err := e.Admin().MigrateInstances(t.Context(), inspect.MigrationRequest{Workflow: "fine", From: 1, To: 2, PerSecond: 100_000})
	for err == nil && m.EndedAt.IsZero() {
		await.Pass("the migration goes on", 20*time.Millisecond)
		m, err = e.Admin().Migration(t.Context(), m.ID)
	}
	assert.Truef(t, err == nil && m.Migrated == open && m.Rejected+m.Skipped == 0, "%d cases are open: %+v, %v", open, m, err)
	t.Logf("%d of %d cases in %s", open, first.Cases, m.EndedAt.Sub(m.CreatedAt))
	second := played()
	assert.True(t, second.Once == 0 && second.Found == first.Once, second)
	v, err := e.Admin().Verify(t.Context(), "", uuid.Nil)
	assert.Truef(t, err == nil && len(v.Broken) == 0 && v.Entries == first.Accepted+open, "%+v, %v", v, err)
}
