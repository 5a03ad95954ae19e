//go:build unix

package faults

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/workflow"
)

// The node that migrates is frozen in the middle of a page, with an instance that is held, until another node has its lease and has
// done all. Then it thaws, and goes on with what it had begun: each instance is migrated once, and counted once.
func TestAFrozenNodeMigratesNothingTwice(t *testing.T) {
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
	const pages = "SELECT count(*) FROM pawl.instance_migration, held WHERE page::text LIKE '%' || held.id || '%'"
	await.Eventually(t, "the node comes to an instance that is held", func() bool { return number(t, pool, pages) == 1 })
	require.NoError(t, frozen.command.Process.Signal(syscall.SIGSTOP))
	// What the node has locked, or is about to lock, it would hold until its session ends. The test's own engine loses its own, too.
	if _, err := pool.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND application_name LIKE 'pawl %'`); err != nil {
		t.Fatal(err)
	}
	release()
	lapse(t, pool)
	other := startNode(t, pool, nodeMigrates+"=1")
	m := parcelsMigrated(t, e)
	require.NoError(t, frozen.command.Process.Signal(syscall.SIGCONT))
	other.end(t)
	frozen.end(t)
	scans.end()
	now, err := e.Admin().Migration(t.Context(), m.ID)
	assert.Truef(t, err == nil && m.Migrated == all && now.Migrated == all && now.Skipped+now.Rejected == 0,
		"%+v, then %+v, %v", m, now, err)
	scans.check(pool, all)
	wantSound(t, e, pool)
}
