package localpg

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLastingServerKeepsData(t *testing.T) {
	t.Parallel()
	dir := openFolder(t)
	first := startServer(t, Options{Dir: dir, Settings: map[string]string{"work_mem": "9MB"}})
	for setting, want := range map[string]string{
		"fsync":                   "on",
		"work_mem":                "9MB",
		"max_connections":         "200",
		"listen_addresses":        "127.0.0.1",
		"unix_socket_directories": "",
		"password_encryption":     "scram-sha-256",
	} {
		assert.Equal(t, want, ask(t, first.URL(), "SHOW "+setting), setting)
	}
	run(t, first.URL(), `CREATE TABLE kept AS SELECT 'still here' AS what`)
	stopServer(t, first)
	_, ok := runningIn(first.data())
	require.False(t, ok, "the server still runs after its only user stopped it")
	second := startServer(t, Options{Dir: dir})
	assert.Equal(t, "still here", ask(t, second.URL(), `SELECT what FROM kept`), "after a restart the table holds")
}

func TestStart_DataOfOtherVersion(t *testing.T) {
	t.Parallel()
	bin, err := usualFolders().find(t.Context())
	require.NoError(t, err)
	other := oldestMajor
	if bin.major == other {
		other = newestMajor
	}
	dir := openFolder(t)
	home := binaries{major: other}.home(dir)
	require.NoError(t, os.MkdirAll(filepath.Join(home, "data"), 0o700))
	s, err := Start(t.Context(), Options{Dir: dir})
	if err == nil {
		stopServer(t, s)
	}
	assert.ErrorContains(t, err, home)
	onlyEntry(t, dir, filepath.Base(home))
}

func TestTemporaryServerLeavesNothing(t *testing.T) {
	t.Parallel()
	s := startServer(t, Options{Ephemeral: true})
	assert.Equal(t, "off", ask(t, s.URL(), "SHOW fsync"), "fsync")
	const invalidPassword = "28P01"
	_, err := query(t.Context(), strings.Replace(s.URL(), s.password, "guess", 1), `SELECT 1`)
	refused, _ := errors.AsType[*pgconn.PgError](err)
	require.NotNil(t, refused)
	assert.Equal(t, invalidPassword, refused.Code)
	info, err := os.Stat(s.path("password"))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	for range 2 { // Stop may be called twice
		stopServer(t, s)
	}
	_, ok := runningIn(s.data())
	assert.False(t, ok, "after Stop the server runs")
	_, err = os.Stat(s.home)
	assert.ErrorIs(t, err, os.ErrNotExist, "after Stop its folder, want it gone")
}

func TestTemporaryServer_Crash(t *testing.T) {
	t.Parallel()
	dir := openFolder(t)
	crashed := startServer(t, Options{Dir: dir, Ephemeral: true})
	require.NoError(t, postmasterOf(t, crashed.data()).end(t.Context(), syscall.SIGKILL))
	mark := filepath.Join(crashed.data(), "from-before")
	require.NoError(t, os.WriteFile(mark, nil, 0o600))
	stopServer(t, crashed)

	fresh := startServer(t, Options{Dir: dir, Ephemeral: true})
	_, err := os.Stat(mark)
	assert.ErrorIs(t, err, os.ErrNotExist, "data of the crashed server is still there")
	stopServer(t, fresh)
	require.NoError(t, os.WriteFile(mark, nil, 0o600))
	startServer(t, Options{Dir: dir, Ephemeral: true})
	_, err = os.Stat(mark)
	assert.NoError(t, err, "data of a server that was shut down in order")
}

func TestStart_PortTakenMeanwhile(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp4", loopback+":0")
	require.NoError(t, err)
	defer func() { _ = taken.Close() }()
	bin, err := usualFolders().find(t.Context())
	require.NoError(t, err)
	offers := 0
	s, err := newServer(openFolder(t), nil)
	require.NoError(t, err)
	s.freePort = func() (int, error) {
		if offers++; offers <= 2 {
			return taken.Addr().(*net.TCPAddr).Port, nil
		}
		return freePort()
	}
	t.Cleanup(func() { stopServer(t, s) })
	require.NoError(t, s.start(t.Context(), Options{Ephemeral: true}, bin, t.Logf))
	assert.Equal(t, 3, offers, "asked for a port times, want 3: twice a taken one, then a free one")
	ask(t, s.URL(), `SELECT 'answers'`)
}

func TestStart_InvalidSetting(t *testing.T) {
	t.Parallel()
	_, err := Start(t.Context(), Options{Ephemeral: true, Settings: map[string]string{"no_such_setting": "1"}})
	assert.ErrorContains(t, err, "no_such_setting", "want what PostgreSQL says about no_such_setting")
}

func TestStart_Cancelled(t *testing.T) {
	t.Parallel()
	dir := openFolder(t)
	s := startServer(t, Options{Dir: dir})
	stopServer(t, s) // the data folder is there, so that the cancelled start reaches the server

	ctx, cancel := context.WithCancel(t.Context())
	_, err := Start(ctx, Options{Dir: dir, Log: func(format string, _ ...any) {
		if strings.HasPrefix(format, "starting") {
			cancel()
		}
	}})
	assert.ErrorIs(t, err, context.Canceled, "a cancelled start, want context.Canceled")
	pm, ok := runningIn(s.data())
	assert.Falsef(t, ok, "process %d still runs", pm.pid)
}

func TestFolder_Unreachable(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root runs the server as another user")
	}
	closed := filepath.Join(openFolder(t), "closed")
	require.NoError(t, os.Mkdir(closed, 0o700))
	_, err := Start(t.Context(), Options{Dir: filepath.Join(closed, "pg")})
	assert.ErrorContains(t, err, closed, "want it to name")
}
