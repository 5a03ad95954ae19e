package faults

import (
	"context"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/localpg"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/schema"
)

// A caller's transaction with synchronous_commit off, the replay of its command to
// another caller, and a crash of the server: the command is not lost.
func TestReplayedCommandSurvivesCrash(t *testing.T) {
	t.Parallel()
	pool := mortal(t)
	e := start(t, pool)
	must(t, e, opening("x"))
	tx := begin(t, pool, pgx.TxOptions{})
	_, err := tx.Exec(t.Context(), "SET LOCAL synchronous_commit = off")
	require.NoError(t, err)
	submitTx(t, e, tx, onCounter("x", "add", "1", `{"by":1}`))
	require.NoError(t, tx.Commit(t.Context()))
	replayed := must(t, e, onCounter("x", "add", "1", `{"by":1}`))
	crash(t, pool)
	again := must(t, e, onCounter("x", "add", "1", `{"by":1}`))
	assert.True(t, replayed.Replayed)
	assert.Equal(t, replayed, again)
	wantSound(t, e, pool)
}

// mortal is a server of the test's own, which can crash.
func mortal(t *testing.T) *pgxpool.Pool {
	t.Helper()
	// Nothing is flushed but by a commit that waits for it. The server writes to the
	// system, which does not crash, so it need not wait for the disk.
	server, err := localpg.Start(t.Context(), localpg.Options{Ephemeral: true,
		Settings: map[string]string{"fsync": "off", "wal_writer_delay": "10s", "autovacuum": "off"}})
	if err != nil {
		t.Skipf("no private server: %v", err)
	}
	t.Cleanup(func() {
		assert.NoError(t, server.Stop())
	})
	pool, err := pgxpool.New(t.Context(), server.URL())
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	_, err = schema.Migrate(t.Context(), pool, schema.Default)
	require.NoError(t, err)
	return pool
}

// crash kills a process of the server, which then begins again with what it has
// written.
func crash(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	connect := func() (*pgx.Conn, error) { return pgx.ConnectConfig(t.Context(), pool.Config().ConnConfig.Copy()) }
	victim, err := connect()
	require.NoError(t, err)
	defer func() { _ = victim.Close(context.Background()) }()
	witness, err := connect()
	require.NoError(t, err)
	defer func() { _ = witness.Close(context.Background()) }()
	if err := syscall.Kill(int(victim.PgConn().PID()), syscall.SIGKILL); err != nil {
		t.Skipf("cannot kill a process of the server: %v", err)
	}
	await.Eventually(t, "all processes of the server have ended", func() bool {
		_, err := witness.Exec(t.Context(), "SELECT 1")
		return err != nil
	})
	await.Eventually(t, "the server is there again", func() bool {
		conn, err := connect()
		if err != nil {
			return false
		}
		_, err = conn.Exec(t.Context(), "SELECT 1")
		return conn.Close(t.Context()) == nil && err == nil
	})
	pool.Reset()
}
