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
)

func TestLastingServerKeepsItsDataAndTakesSettings(t *testing.T) {
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
		if got := ask(t, first.URL(), "SHOW "+setting); got != want {
			t.Errorf("%s is %q, want %q", setting, got, want)
		}
	}
	run(t, first.URL(), `CREATE TABLE kept AS SELECT 'still here' AS what`)
	stopServer(t, first)
	if _, ok := runningIn(first.data()); ok {
		t.Fatal("the server still runs after its only user stopped it")
	}
	second := startServer(t, Options{Dir: dir})
	if got := ask(t, second.URL(), `SELECT what FROM kept`); got != "still here" {
		t.Errorf("after a restart the table holds %q", got)
	}
}

func TestDataOfAnotherVersionIsNotLeftBehind(t *testing.T) {
	t.Parallel()
	bin, err := usualFolders().find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	other := oldestMajor
	if bin.major == other {
		other = newestMajor
	}
	dir := openFolder(t)
	home := binaries{major: other}.home(dir)
	if err := os.MkdirAll(filepath.Join(home, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := Start(t.Context(), Options{Dir: dir})
	if err == nil {
		stopServer(t, s)
	}
	if err == nil || !strings.Contains(err.Error(), home) {
		t.Errorf("got %v, want a refusal that names the data", err)
	}
	onlyEntry(t, dir, filepath.Base(home))
}

func TestThrowAwayServerIsPrivateAndLeavesNothing(t *testing.T) {
	t.Parallel()
	s := startServer(t, Options{Ephemeral: true})
	if got := ask(t, s.URL(), "SHOW fsync"); got != "off" {
		t.Errorf("fsync is %s", got)
	}
	const invalidPassword = "28P01"
	_, err := query(t.Context(), strings.Replace(s.URL(), s.password, "guess", 1), `SELECT 1`)
	if pgErr := (*pgconn.PgError)(nil); !errors.As(err, &pgErr) || pgErr.Code != invalidPassword {
		t.Errorf("a wrong password: %v, want SQLSTATE %s", err, invalidPassword)
	}
	info, err := os.Stat(s.path("password"))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the password file has mode %v", info.Mode())
	}
	for range 2 { // Stop may be called twice
		stopServer(t, s)
	}
	if _, ok := runningIn(s.data()); ok {
		t.Error("after Stop the server runs")
	}
	if _, err := os.Stat(s.home); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after Stop its folder: %v, want it gone", err)
	}
}

func TestSharedThrowAwayFolderIsMadeAnewAfterACrash(t *testing.T) {
	t.Parallel()
	dir := openFolder(t)
	crashed := startServer(t, Options{Dir: dir, Ephemeral: true})
	if err := postmasterOf(t, crashed.data()).end(t.Context(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	mark := filepath.Join(crashed.data(), "from-before")
	if err := os.WriteFile(mark, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	stopServer(t, crashed)

	fresh := startServer(t, Options{Dir: dir, Ephemeral: true})
	if _, err := os.Stat(mark); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("data of the crashed server is still there: %v", err)
	}
	stopServer(t, fresh)
	if err := os.WriteFile(mark, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	startServer(t, Options{Dir: dir, Ephemeral: true})
	if _, err := os.Stat(mark); err != nil {
		t.Errorf("data of a server that was shut down in order: %v", err)
	}
}

func TestAPortTakenMeanwhileIsReplaced(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp4", loopback+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	bin, err := usualFolders().find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	offers := 0
	s, err := newServer(openFolder(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	s.freePort = func() (int, error) {
		if offers++; offers <= 2 {
			return taken.Addr().(*net.TCPAddr).Port, nil
		}
		return freePort()
	}
	t.Cleanup(func() { stopServer(t, s) })
	if err := s.start(t.Context(), Options{Ephemeral: true}, bin, t.Logf); err != nil {
		t.Fatal(err)
	}
	if offers != 3 {
		t.Errorf("asked for a port %d times, want 3: twice a taken one, then a free one", offers)
	}
	ask(t, s.URL(), `SELECT 'answers'`)
}

func TestAServerThatCannotStartSaysWhy(t *testing.T) {
	t.Parallel()
	_, err := Start(t.Context(), Options{Ephemeral: true, Settings: map[string]string{"no_such_setting": "1"}})
	if err == nil || !strings.Contains(err.Error(), "no_such_setting") {
		t.Errorf("got %v, want what PostgreSQL says about no_such_setting", err)
	}
}

func TestACancelledStartLeavesNothingRunning(t *testing.T) {
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
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled start: %v, want context.Canceled", err)
	}
	if pm, ok := runningIn(s.data()); ok {
		t.Errorf("process %d still runs", pm.pid)
	}
}

func TestAFolderOutOfReachOfTheServersAccountIsNamed(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root runs the server as another user")
	}
	closed := filepath.Join(openFolder(t), "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), Options{Dir: filepath.Join(closed, "pg")})
	if err == nil || !strings.Contains(err.Error(), closed) {
		t.Errorf("got %v, want it to name %s", err, closed)
	}
}
