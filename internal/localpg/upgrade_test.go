package localpg

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// startWith starts or adopts the server of the folder as a program that finds binaries of another version there, and returns the log.
func startWith(t *testing.T, dir, version string) (s *Server, log string, err error) {
	t.Helper()
	bin, err := usualFolders().find(t.Context())
	require.NoError(t, err)
	require.NoError(t, makeFolder(bin.home(dir)))
	bin.version = version
	s, err = newServer(bin.home(dir), nil)
	require.NoError(t, err)
	err = s.start(t.Context(), Options{Dir: dir}, bin, func(format string, args ...any) { log += fmt.Sprintf(format, args...) + "\n" })
	t.Cleanup(func() { stopServer(t, s) })
	return s, log, err
}

// abandon starts a server, gives it a table and kills the program, so that the server keeps running without users.
func abandon(t *testing.T, dir string) report {
	t.Helper()
	killed := startOther(t, dir)
	r := killed.report(t)
	run(t, r.URL, `CREATE TABLE kept AS SELECT 'still here' AS what`)
	killed.kill(t)
	return r
}

func TestUpgradeRestartsIdleServer(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]string{"another version": "", "libraries that cannot be loaded": breakLibraries} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := openFolder(t)
			old := abandon(t, dir)
			version := "15.0"
			if damage != "" {
				run(t, strings.Replace(old.URL, "/pawl?", "/postgres?", 1), damage)
				version = versionOf(t, old.URL)
			}
			s, log, err := startWith(t, dir, version)
			require.NoError(t, err)
			pm := postmasterOf(t, s.data())
			assert.NotEqual(t, old.Postmaster, pm.pid)
			assert.Contains(t, log, "restarting")
			assert.Equal(t, "still here", ask(t, s.URL(), `SELECT what FROM kept`))
			assert.True(t, s.users.try(syscall.LOCK_SH))
		})
	}
}

func TestUpgradeLeavesUsedServerAlone(t *testing.T) {
	t.Parallel()
	dir := openFolder(t)
	user := startOther(t, dir)
	r := user.report(t)
	s, log, err := startWith(t, dir, "15.0")
	require.NoError(t, err)
	assert.Equal(t, r.Postmaster, postmasterOf(t, s.data()).pid)
	assert.Contains(t, log, fmt.Sprint("kill -INT ", r.Postmaster))
	run(t, strings.Replace(r.URL, "/pawl?", "/postgres?", 1), breakLibraries)
	_, _, err = startWith(t, dir, "15.0")
	require.Error(t, err)
	assert.Regexp(t, `15\.0.*kill -INT`, err.Error())
	ask(t, r.URL, `SELECT 'answers'`)
	stopServer(t, s)
	user.quit(t)
}

func TestReplacedProgramIsNoticed(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/exe"); err != nil {
		t.Skip("only Linux can tell")
	}
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Skip(err)
	}
	program := filepath.Join(t.TempDir(), "program")
	content, err := os.ReadFile(sleep)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(program, content, 0o755))
	cmd := exec.Command(program, "600")
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	pm := postmaster{pid: cmd.Process.Pid}
	assert.False(t, pm.replaced(), "a program in its place is said to be replaced")
	require.NoError(t, os.Remove(program))
	assert.True(t, pm.replaced(), "a program that was removed is not noticed")
}

// breakLibraries makes the server look for the library of PL/pgSQL in a missing folder, as after an upgrade.
const breakLibraries = `UPDATE pg_proc SET probin = '/nowhere/plpgsql' WHERE proname = 'plpgsql_inline_handler'`

func versionOf(t *testing.T, url string) string {
	t.Helper()
	version, _, _ := strings.Cut(ask(t, url, `SHOW server_version`), " ")
	return version
}

func TestUpgradeKeepsServer_SameVersionOrClients(t *testing.T) {
	t.Parallel()
	dir := openFolder(t)
	old := abandon(t, dir)
	conn, err := pgx.Connect(t.Context(), old.URL)
	require.NoError(t, err)
	for version, want := range map[string]string{versionOf(t, old.URL): "using", "15.0": "in use"} {
		s, log, err := startWith(t, dir, version)
		require.NoError(t, err)
		assert.Equal(t, old.Postmaster, postmasterOf(t, s.data()).pid)
		assert.Contains(t, log, want)
	}
	assert.NoError(t, conn.Close(t.Context()))
}
