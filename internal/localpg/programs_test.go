package localpg

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSharedServer(t *testing.T) {
	t.Parallel()
	dir := openFolder(t)
	a, b := startOther(t, dir), startOther(t, dir)
	ra, rb := a.report(t), b.report(t)
	require.Equal(t, rb, ra, "two programs, two servers and")
	data := filepath.Join(ra.Home, "data")
	a.quit(t)
	pm := postmasterOf(t, data)
	require.Equal(t, ra.Postmaster, pm.pid, "after one program ended, process runs")
	ask(t, rb.URL, `SELECT 'answers'`)
	b.quit(t)
	pm, ok := runningIn(data)
	assert.Falsef(t, ok, "after both programs ended, process %d still runs", pm.pid)
}

func TestConcurrentStartsAndStops(t *testing.T) {
	t.Parallel()
	dir := openFolder(t)
	var users sync.WaitGroup
	for range 4 {
		users.Go(func() {
			for range 5 {
				s, err := Start(t.Context(), Options{Dir: dir, Ephemeral: true})
				if !assert.NoError(t, err) {
					return
				}
				_, err = query(t.Context(), s.URL(), `SELECT 'answers'`)
				assert.NoError(t, err)
				assert.NoError(t, s.Stop())
			}
		})
	}
	users.Wait()
	homes, err := filepath.Glob(filepath.Join(dir, "*", "data"))
	require.Truef(t, err == nil && len(homes) == 1, "data folders %v, %v; want one", homes, err)
	pm, ok := runningIn(homes[0])
	assert.Falsef(t, ok, "process %d still runs", pm.pid)
}

func TestStartAdoptsServerOfKilledProgram(t *testing.T) {
	t.Parallel()
	dir := openFolder(t)
	killed := startOther(t, dir)
	r := killed.report(t)
	killed.kill(t)

	s := startServer(t, Options{Dir: dir})
	pm := postmasterOf(t, s.data())
	assert.Equal(t, report{s.URL(), s.home, pm.pid}, r)
	stopServer(t, s)
	_, ok := runningIn(s.data())
	assert.False(t, ok, "the last user left the server running")
}

func TestTemporaryServer_KilledProgram(t *testing.T) {
	t.Parallel()
	temp := "TMPDIR=" + openFolder(t)
	killed, busy := startOther(t, "-", temp), startOther(t, "-", temp)
	gone, used := killed.report(t), busy.report(t)
	data := filepath.Join(gone.Home, "data")
	killed.kill(t)
	waitGone(t, data, gone.Postmaster)
	assert.NoError(t, poll(t.Context(), "the folder to be removed", func() (bool, error) {
		_, err := os.Stat(gone.Home)
		return errors.Is(err, os.ErrNotExist), nil
	}))
	ask(t, used.URL, `SELECT 'answers'`)
	busy.quit(t)
}

func TestStart_StaleLockFile(t *testing.T) {
	t.Parallel()
	dir := openFolder(t)
	s := startServer(t, Options{Dir: dir})
	require.NoError(t, postmasterOf(t, s.data()).end(t.Context(), syscall.SIGKILL))
	stale, err := os.ReadFile(pidFile(s.data()))
	require.NoError(t, err, "a killed server leaves its lock file")
	stopServer(t, s)
	t.Run("of a process that is gone", func(t *testing.T) {
		again := startServer(t, Options{Dir: dir})
		ask(t, again.URL(), `SELECT 'answers'`)
	})
	t.Run("of a process number that another program has now", func(t *testing.T) {
		_, rest, _ := strings.Cut(string(stale), "\n")
		stranger := startAs(t, s.account, "sleep", "600")
		content := fmt.Sprintf("%d\n%s", stranger.Process.Pid, rest)
		require.NoError(t, os.WriteFile(pidFile(s.data()), []byte(content), 0o600))
		require.NoError(t, s.account.own(pidFile(s.data())))
		again := startServer(t, Options{Dir: dir})
		ask(t, again.URL(), `SELECT 'answers'`)
	})
}

// A server is killed, and one of its backends notices that late.
func TestStartWaitsForBackends(t *testing.T) {
	t.Parallel()
	dir := openFolder(t)
	s := startServer(t, Options{Dir: dir})
	late, err := strconv.Atoi(ask(t, s.URL(), `SELECT pid::text FROM pg_stat_activity WHERE backend_type = 'checkpointer'`))
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(late, syscall.SIGSTOP))
	goOn := sync.OnceFunc(func() {
		assert.NoError(t, syscall.Kill(late, syscall.SIGCONT))
	})
	defer goOn()
	require.NoError(t, postmasterOf(t, s.data()).end(t.Context(), syscall.SIGKILL))
	stopServer(t, s)
	again, err := Start(t.Context(), Options{Dir: dir, Log: func(format string, args ...any) {
		t.Logf(format, args...)
		if strings.HasPrefix(format, "waiting") {
			goOn()
		}
	}})
	require.NoError(t, err)
	defer stopServer(t, again)
	ask(t, again.URL(), `SELECT 'answers'`)
}

// TestAsNormalUser repeats the tests of whole servers as an unprivileged account, with a copy of the test binary.
func TestAsNormalUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("this is a normal user already")
	}
	nobody := &account{Uid: 65534, Gid: 65534}
	dir := openFolder(t)
	for _, name := range []string{"home", "tmp"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o700))
		require.NoError(t, nobody.own(filepath.Join(dir, name)))
	}
	binary := filepath.Join(dir, "localpg.test")
	// Not copied by this process: a child of a parallel test could still have the file open for writing.
	require.NoError(t, exec.Command("cp", os.Args[0], binary).Run())
	require.NoError(t, os.Chmod(binary, 0o755))

	cmd := exec.CommandContext(t.Context(), binary, "-test.v", "-test.run",
		"KeepsData|SharedServer|LeavesNothing|UserDir")
	nobody.runs(cmd, dir)
	cmd.Env = append(os.Environ(), "HOME="+filepath.Join(dir, "home"), "TMPDIR="+filepath.Join(dir, "tmp"),
		"XDG_CACHE_HOME=")
	out, err := cmd.CombinedOutput()
	require.NoErrorf(t, err, "as nobody \n%s", out)
	for _, want := range []string{"LastingServer", "SharedServer", "TemporaryServerLeaves", "UserDir"} {
		assert.Containsf(t, string(out), "--- PASS: Test"+want, "no Test%s has passed in the run as nobody:\n%s", want, out)
	}
}
