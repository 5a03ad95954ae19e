package localpg

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The test binary is also the other program in tests of several programs: with this variable set it starts the server
// of the folder that the variable names ("-" for a throw-away one), reports it, and stops it when its input ends.
const envProgram = "LOCALPG_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if dir := os.Getenv(envProgram); dir != "" {
		if err := program(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	m.Run()
}

// report is what the other program says about its server.
type report struct {
	URL, Home  string
	Postmaster int
}

func program(dir string) error {
	o := Options{Dir: dir}
	if dir == "-" {
		o = Options{Ephemeral: true}
	}
	s, err := Start(context.Background(), o)
	if err != nil {
		return err
	}
	pm, _ := runningIn(s.data())
	if err := json.NewEncoder(os.Stdout).Encode(report{s.URL(), s.home, pm.pid}); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	return s.Stop()
}

// other is another program that uses a server.
type other struct {
	cmd    *exec.Cmd
	stdin  io.Closer
	stdout *bufio.Reader
}

// startOther starts another program without waiting for its server.
func startOther(t *testing.T, dir string, env ...string) *other {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envProgram+"="+dir, "GORACE=atexit_sleep_ms=0") // it ends many times
	cmd.Env = append(cmd.Env, env...)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	o := &other{cmd, stdin, bufio.NewReader(stdout)}
	t.Cleanup(func() {
		if o.cmd.ProcessState == nil {
			o.kill(t)
		}
	})
	return o
}

// report waits until the program has its server.
func (o *other) report(t *testing.T) report {
	t.Helper()
	line, err := o.stdout.ReadBytes('\n')
	require.NoError(t, err, "the other program reported no server")
	var r report
	require.NoError(t, json.Unmarshal(line, &r))
	return r
}

// quit lets the program stop its server and end.
func (o *other) quit(t *testing.T) {
	t.Helper()
	require.NoError(t, o.stdin.Close())
	require.NoError(t, o.cmd.Wait(), "the other program")
}

// kill ends the program without any chance to clean up.
func (o *other) kill(t *testing.T) {
	t.Helper()
	require.NoError(t, o.cmd.Process.Kill())
	require.Error(t, o.cmd.Wait(), "the other program ended in order, though killed")
}

// openFolder makes a folder for the test that every user can reach, unlike those of t.TempDir.
func openFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(throwAwayBase(), "localpg-test-")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chmod(dir, 0o755))
	dir, err = filepath.EvalSymlinks(dir)
	require.NoError(t, err)
	return dir
}

// startServer starts a server that the end of the test stops.
func startServer(t *testing.T, o Options) *Server {
	t.Helper()
	o.Log = t.Logf
	s, err := Start(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { stopServer(t, s) })
	return s
}

func stopServer(t *testing.T, s *Server) {
	t.Helper()
	assert.NoError(t, s.Stop())
}

// ask runs a query with one result.
func ask(t *testing.T, url, sql string) string {
	t.Helper()
	answer, err := query(t.Context(), url, sql)
	require.NoError(t, err, sql)
	return answer
}

// run runs a statement without a result.
func run(t *testing.T, url, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), sql)
	require.NoError(t, err, sql)
	require.NoError(t, conn.Close(t.Context()))
}

func query(ctx context.Context, url, sql string) (answer string, err error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close(ctx) }()
	err = conn.QueryRow(ctx, sql).Scan(&answer)
	return answer, err
}

// waitGone waits until the server process has ended.
func waitGone(t *testing.T, data string, pid int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	pm := postmaster{data: data, pid: pid}
	require.NoError(t, poll(ctx, "the server to end", func() (bool, error) { return !pm.alive(), nil }))
}

// postmasterOf returns the server's process, which must be running.
func postmasterOf(t *testing.T, data string) postmaster {
	t.Helper()
	pm, ok := runningIn(data)
	require.Truef(t, ok, "no server runs in %s", data)
	return pm
}

// startAs runs a command as the server's account and kills it at the end of the test.
func startAs(t *testing.T, a *account, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := a.runs(exec.Command(name, args...), "/")
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		assert.NoError(t, cmd.Process.Signal(syscall.SIGKILL))
		_ = cmd.Wait() // it was killed
	})
	return cmd
}
