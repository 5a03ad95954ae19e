package faults

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/examples/fines"
	"github.com/pawlhq/pawl/examples/fines/replay"
	"github.com/pawlhq/pawl/examples/fines/replay/fold"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/workflow"
)

func withFines(c *engine.Config) { c.Workflows = []workflow.Source{fines.Workflow} }

// someEvents is a shortened log: the beginning of the real one where PAWL_DATA
// has it, else of a made-up one. With PAWL_FULL=1 it is the whole log.
func someEvents(t testing.TB, events int) replay.Log {
	t.Helper()
	log := replay.Made(7, 150_000)
	if folder := os.Getenv("PAWL_DATA"); folder != "" {
		log = replay.File(filepath.Join(folder, "road_traffic_fines.csv.gz"))
	}
	if os.Getenv("PAWL_FULL") == "1" {
		return log
	}
	return log.First(events)
}

// wantReplay plays the log against the targets and fails the test unless all is
// as the fold says, in the answers and in the database.
func wantReplay(t testing.TB, e *engine.Engine, pool *pgxpool.Pool, c replay.Config) *replay.Report {
	t.Helper()
	c.Patience, c.Database, c.Verifier = 4*patience, pool, e.Admin()
	report, err := replay.Run(t.Context(), c)
	require.NoError(t, err, report)
	require.NoError(t, replay.Check(t.Context(), c, report), report)
	assert.NoError(t, report.Err())
	assert.Falsef(t, os.Getenv("PAWL_FULL") == "1" && os.Getenv("PAWL_DATA") != "" && report.Durable.Digest != fold.LogDigest,
		"the durable trace has the digest %s, want %s", report.Durable.Digest, fold.LogDigest)
	t.Logf("\n%v%+v", report, e.Admin().Stats())
	return report
}

func against(targets ...replay.Target) []replay.Target { return targets }

// wantEachOnce fails the test unless every event was done for one caller and
// replayed to the other.
func wantEachOnce(t testing.TB, r *replay.Report) {
	t.Helper()
	stored := r.Accepted
	for _, n := range r.Refused {
		stored += n
	}
	assert.Truef(t, r.Once == stored && r.Events >= 10_000 && len(r.Refused) != 0,
		"of %d events with a stored outcome %d were done once and replayed once", stored, r.Once)
}

// The log, every event twice at the same time, straight into the engine.
func TestReplayEndsAsTheFoldSays(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e := start(t, pool, withFines)
	wantEachOnce(t, wantReplay(t, e, pool, replay.Config{Log: someEvents(t, 10_000), Targets: against(e)}))
}

// The same over REST, in bulk.
func TestReplayOverRESTEndsAsTheFoldSays(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	pool := database(t)
	e := start(t, pool, withFines)
	a, err := api.New(e, api.Config{})
	require.NoError(t, err)
	server := httptest.NewServer(a)
	defer server.Close()
	targets := against(replay.HTTP(server.URL, server.Client()))
	wantEachOnce(t, wantReplay(t, e, pool, replay.Config{Log: someEvents(t, 10_000), Targets: targets}))
}

// Two nodes share the database, and each duplicate goes to the other node.
func TestReplayToTwoNodesEndsAsTheFoldSays(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	pool := database(t)
	e := start(t, pool, withFines)
	other := start(t, pool, withFines)
	wantEachOnce(t, wantReplay(t, e, pool, replay.Config{Log: someEvents(t, 10_000), Targets: against(e, other)}))
	t.Logf("the other node: %+v", other.Admin().Stats())
}

// The engine's connections are ended at random all the time.
func TestReplay_ConnectionsEnded(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	pool := database(t)
	e := start(t, pool, withFines)
	looks := pgtest.DirectTo(t, pool) // through a pooler it would be ended too
	kill, ended := killer(t, looks, 200)
	report := wantReplay(t, e, looks, replay.Config{Log: someEvents(t, 10_000), Targets: against(e), Batch: 100, Progress: kill})
	n := ended()
	t.Logf("%d connections were ended; %d answers were found by their keys", n, report.Found)
	assert.Truef(t, n >= 10, "only %d connections were ended; the test proves little", n)
}
