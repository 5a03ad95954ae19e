package pgtest

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/localpg"
)

// The test binary is also another package's tests, in tests of several processes: with this variable set it creates a
// database, prints its URL and waits for the end of its input.
const envProcess = "PGTEST_TEST_PROCESS"

func TestMain(m *testing.M) {
	if os.Getenv(envProcess) == "" {
		Main(m)
		return
	}
	if err := process(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func process(ctx context.Context) error {
	s, err := openServer(ctx, nil)
	if err != nil {
		return err
	}
	name, err := s.create(ctx, empty)
	if err != nil {
		return err
	}
	fmt.Println(s.directURLFor(name))
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	return s.close()
}

func exists(t *testing.T, s *server, name string) (found bool) {
	t.Helper()
	err := s.admin.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`, name).Scan(&found)
	require.NoError(t, err)
	return found
}

func TestSharedServer_KilledProcess(t *testing.T) {
	t.Parallel()
	own := DirectURL(t) // a PgBouncer is each process's own
	s, err := connect()
	require.NoError(t, err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envProcess+"=1")
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	defer func() { _ = stdin.Close() }()
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var theirs string
	_, scanErr := fmt.Fscanln(stdout, &theirs)
	name := databaseOf(t, theirs)
	assert.Truef(t, scanErr == nil && hostOf(t, theirs) == hostOf(t, own),
		"the other process uses %s (%v), we use %s", theirs, scanErr, own)
	require.NoError(t, s.sweep(t.Context()))
	assert.Truef(t, exists(t, s, name), "%s was dropped while its process lives", name)

	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
	deadline := time.Now().Add(time.Minute)
	for exists(t, s, name) { // the server notices the end of the process a little later
		require.NoError(t, s.sweep(t.Context()))
		require.Falsef(t, time.Now().After(deadline), "%s is still there though its process was killed", name)
	}
	assert.True(t, exists(t, s, databaseOf(t, own)), "our own database was dropped")
}

func TestTheServerOfDATABASE_URLIsUsed(t *testing.T) {
	t.Setenv(EnvBouncer, "")
	local, err := localpg.Start(t.Context(), localpg.Options{Ephemeral: true})
	require.NoError(t, err)
	defer func() {
		assert.NoError(t, local.Stop())
	}()
	config, err := pgx.ParseConfig(local.URL())
	require.NoError(t, err)
	keywords := fmt.Sprintf("host=%s port=%d user=%s password=%s dbname=%s sslmode=disable",
		config.Host, config.Port, config.User, config.Password, config.Database)
	for _, dsn := range []string{local.URL(), keywords} {
		t.Setenv("DATABASE_URL", dsn)
		s, err := openServer(t.Context(), nil)
		require.NoError(t, err)
		name, err := s.create(t.Context(), empty)
		require.NoError(t, err)
		conn, err := pgx.Connect(t.Context(), s.urlFor(name))
		require.NoError(t, err)
		if got := conn.Config(); got.Database != name || got.Port != config.Port {
			t.Errorf("connected to %s on port %d, want %s on port %d", got.Database, got.Port, name, config.Port)
		}
		if err := s.drop(t.Context(), name); err != nil { // though somebody is connected
			t.Error(err)
		}
		_ = conn.Close(t.Context()) // the server has ended it
		assert.NoError(t, s.close())
	}
}

func TestABadDATABASE_URLIsNamed(t *testing.T) {
	t.Setenv("DATABASE_URL", "postgres://nobody@127.0.0.1:1/none?connect_timeout=x")
	_, err := openServer(t.Context(), nil)
	assert.ErrorContains(t, err, "DATABASE_URL", "want an error that names DATABASE_URL")
}

func hostOf(t *testing.T, rawURL string) string { return parse(t, rawURL).Host }
func databaseOf(t *testing.T, rawURL string) string {
	return strings.TrimPrefix(parse(t, rawURL).Path, "/")
}

func parse(t *testing.T, rawURL string) *url.URL {
	t.Helper()
	u, err := url.Parse(rawURL)
	require.NoError(t, err)
	return u
}
