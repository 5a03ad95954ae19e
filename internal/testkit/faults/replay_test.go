package faults

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/examples/fines"
	"github.com/pawlhq/pawl/examples/fines/replay"
	"github.com/pawlhq/pawl/examples/fines/replay/fold"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func withFines(c *engine.Config) { c.Workflows = []workflow.Source{fines.Workflow} }

// someEvents returns the beginning of the log in PAWL_DATA, or of a generated one. PAWL_FULL=1 returns the whole log.
func someEvents(t testing.TB) replay.Log {
	t.Helper()
	log := replay.Made(7, 150_000)
	if folder := os.Getenv("PAWL_DATA"); folder != "" {
		log = replay.File(filepath.Join(folder, "road_traffic_fines.csv.gz"))
	}
	if os.Getenv("PAWL_FULL") == "1" {
		return log
	}
	return log.First(10_000)
}

// wantReplay plays the log against the targets and compares the results and the database with the fold.
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

// Every event of the log is submitted twice at the same time.
func TestReplay(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e := start(t, pool, withFines)
	r := wantReplay(t, e, pool, replay.Config{Log: someEvents(t), Targets: []replay.Target{e}})
	stored := r.Accepted
	for _, n := range r.Refused {
		stored += n
	}
	assert.Equal(t, stored, r.Once, "events with a stored outcome that were done once and replayed once")
	assert.GreaterOrEqual(t, r.Events, int64(10_000))
	assert.NotEmpty(t, r.Refused)
}

// Two programs get the same commands at the same time, including creations of one business key with different idempotency keys. Each
// command has one effect, and both callers get the same bytes.
func TestTwoProgramsReturnTheSameBytes(t *testing.T) {
	t.Parallel()
	pool := database(t)
	first, second := startNode(t, pool), startNode(t, pool)
	ctx := underLoad(t)
	targets := []replay.Target{replay.HTTP("http://"+first.address, nil), replay.HTTP("http://"+second.address, nil)}
	const rounds, instances, each = 20, 8, 4
	for round := range rounds {
		var cs []transitions.Command
		for i := range instances {
			x := fmt.Sprintf("%d-%d", round, i)
			twin := opening(x)
			twin.Key = "another " + x
			cs = append(cs, opening(x), twin)
			for n := range each {
				cs = append(cs, onCounter(x, "add", fmt.Sprint(n), `{"by":1}`), onCounter(x, "add", fmt.Sprint("refused ", n), `{"by":-1}`))
			}
		}
		var replies [2][]transitions.Reply
		var both sync.WaitGroup
		for i := range targets {
			both.Go(func() { replies[i] = targets[i].SubmitMany(ctx, cs) })
		}
		both.Wait()
		for i, c := range cs {
			a, b := replies[0][i], replies[1][i]
			require.NoErrorf(t, errors.Join(a.Err, b.Err), "%s %s", c.BusinessKey, c.Key)
			assert.NotEqualf(t, a.Receipt.Replayed, b.Receipt.Replayed, "%s %s", c.BusinessKey, c.Key)
			a.Receipt.Replayed = b.Receipt.Replayed
			assert.Equalf(t, a, b, "%s %s", c.BusinessKey, c.Key)
			assert.Falsef(t, c.Transition == "open" && strings.HasPrefix(c.Key, "another") == (a.Receipt.Status == 201),
				"%s: answered %d", c.Key, a.Receipt.Status)
		}
	}
	const right = `SELECT count(*) FROM pawl.instance WHERE (data->>'n')::int = $1 AND version = $1 + 1`
	assert.Equal(t, int64(rounds*instances), number(t, pool, right, each), "correct counters")
	wantSound(t, start(t, pool), pool)
	first.end(t)
	second.end(t)
}

// Two programs play the log, and one of them is repeatedly killed and restarted.
func TestReplay_NodeKilled(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	const every, enough = 1_000, 3 // events, kills
	pool := database(t)
	nodes := startFleet(t, pool, 2)
	e := start(t, pool, withFines)
	due, finish := nodes.replaceOnRequest(1)
	defer finish()
	kills := 0
	next := int64(every)
	report := wantReplay(t, e, pool, replay.Config{
		Log:     someEvents(t),
		Targets: []replay.Target{replay.HTTP(nodes.url(0), nodes.client()), replay.HTTP(nodes.url(1), nodes.client())},
		Progress: func(events int64) {
			if events < next {
				return
			}
			next = events + every
			if kills < enough { // however long a start takes
				kills++
				due <- struct{}{}
			}
		},
	})
	t.Logf("%d kills, %d events submitted again", finish(), report.Again)
	assert.Truef(t, kills >= enough && report.Again != 0, "%d kills, %d events submitted again: the test proves little", kills, report.Again)
}
