//go:build unix

package faults

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/workflow"
)

// The migrating node is frozen within a page until another node has taken over and finished. Then it continues: each instance is migrated
// and counted once.
func TestMigration_FrozenNode(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	pool := database(t)
	e := start(t, pool, func(c *engine.Config) { c.Workflows = []workflow.Source{firstParcels, secondParcels()} }) // it has no plan
	require.NoError(t, e.Admin().BeginVersion(t.Context(), "parcel", 1, ""))
	const all = 120
	list := sendParcels(t, e, all)
	scans := scanParcels(t, e, list, 2)
	defer scans.end()
	release := holdOneParcel(t, pool, 30)
	frozen := startNode(t, pool, nodeMigrates+"=1")
	awaitHeldParcel(t, pool)
	require.NoError(t, frozen.command.Process.Signal(syscall.SIGSTOP))
	// The frozen node would keep its locks. The test's own engine loses its connections, too.
	_, err := pool.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND application_name LIKE 'pawl %'`)
	require.NoError(t, err)
	release()
	lapse(t, pool)
	other := startNode(t, pool, nodeMigrates+"=1")
	m := parcelsMigrated(t, e)
	require.NoError(t, frozen.command.Process.Signal(syscall.SIGCONT))
	other.end(t)
	frozen.end(t)
	scans.end()
	now, err := e.Admin().Migration(t.Context(), m.ID)
	require.NoError(t, err)
	assert.Equal(t, m, now)
	assert.Equal(t, [...]int64{all, 0, 0}, [...]int64{now.Migrated, now.Skipped, now.Rejected})
	scans.check(pool)
	wantSound(t, e, pool)
}
