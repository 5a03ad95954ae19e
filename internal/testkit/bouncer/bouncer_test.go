package bouncer

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/localpg"
	"github.com/pawlhq/pawl/internal/testkit/await"
)

// start starts a server and a PgBouncer.
func start(t *testing.T) (*localpg.Server, *Bouncer) {
	t.Helper()
	if !Installed() {
		t.Skip(ErrNotInstalled)
	}
	s, err := localpg.Start(t.Context(), localpg.Options{Ephemeral: true})
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, s.Stop())
	})
	b, err := Start(t.Context(), s.URL(), 2)
	require.NoError(t, err)
	return s, b
}

func TestBouncerReachesEveryDatabase(t *testing.T) {
	t.Parallel()
	s, b := start(t)
	config, err := pgx.ParseConfig(s.URL())
	require.NoError(t, err)
	keywords := fmt.Sprintf("host=%s port=%d user=%s password=%s dbname=%s",
		config.Host, config.Port, config.User, config.Password, config.Database)
	for server, database := range map[string]string{s.URL(): "pawl", s.URLFor("postgres"): "postgres", keywords: "pawl"} {
		through := b.Through(server)
		conn, err := pgx.Connect(t.Context(), through)
		require.NoError(t, err)
		var got string
		err = conn.QueryRow(t.Context(), "SELECT current_database()::text").Scan(&got)
		assert.Truef(t, err == nil && got == database, "%s leads to %s, %v", through, got, err)
		config := conn.Config()
		assert.Truef(t, config.DefaultQueryExecMode == pgx.QueryExecModeExec && fmt.Sprintf("127.0.0.1:%d", config.Port) == b.address,
			"%s: port %d, mode %v", through, config.Port, config.DefaultQueryExecMode)
		assert.NoError(t, conn.Close(t.Context()))
	}
	_, err = pgx.Connect(t.Context(), strings.Replace(b.Through(s.URL()), config.Password, "guess", 1))
	assert.Error(t, err, "it accepts a wrong password")
	_, crashed := b.Crashed()
	assert.False(t, crashed, "it answers and reports a crash")
	for range 2 { // Stop may be called twice
		require.NoError(t, b.Stop())
	}
	_, err = pgx.Connect(t.Context(), b.Through(s.URL()))
	assert.Error(t, err, "it answers after Stop")
	_, err = os.Stat(b.home)
	assert.ErrorIs(t, err, os.ErrNotExist, "after Stop its folder, want it removed")
}

func TestBouncerReportsCrash(t *testing.T) {
	t.Parallel()
	_, b := start(t)
	var pid int
	await.Eventually(t, "PgBouncer writes its pidfile and log", func() bool {
		text, _ := os.ReadFile(b.path("pid"))
		pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
		log, _ := os.ReadFile(b.path("bouncer.log"))
		return pid > 0 && strings.Contains(string(log), "listening on")
	})
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	<-b.ended
	said, crashed := b.Crashed()
	assert.Truef(t, crashed && strings.Contains(said, "listening on"), "crashed: %v, it said %q", crashed, said)
	assert.NoError(t, b.Stop())
}
