package faults

import (
	"fmt"
	"net/http"
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
func TestReplay(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e := start(t, pool, withFines)
	wantEachOnce(t, wantReplay(t, e, pool, replay.Config{Log: someEvents(t, 10_000), Targets: against(e)}))
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

// Two programs share a database and get the same commands at the same time,
// among them creations of one business key with different keys. Each has one
// effect, and both callers get the same bytes.
func TestTwoProgramsReturnTheSameBytes(t *testing.T) {
	t.Parallel()
	pool := database(t)
	first, second := startNode(t, pool), startNode(t, pool)
	ctx := underLoad(t)
	client := &http.Client{Timeout: patience}
	targets := []replay.Target{replay.HTTP("http://"+first.address, client), replay.HTTP("http://"+second.address, client)}
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
		ready := make(chan struct{})
		for i := range targets {
			both.Go(func() {
				<-ready
				replies[i] = targets[i].SubmitMany(ctx, cs)
			})
		}
		close(ready)
		both.Wait()
		for i, c := range cs {
			a, b := replies[0][i], replies[1][i]
			require.Truef(t, a.Err == nil && b.Err == nil, "%s %s: %v, %v", c.BusinessKey, c.Key, a.Err, b.Err)
			if a.Receipt.Replayed == b.Receipt.Replayed || a.Receipt.Status != b.Receipt.Status || string(a.Receipt.Body) != string(b.Receipt.Body) {
				t.Errorf("%s %s:\n%v %d %s\n%v %d %s", c.BusinessKey, c.Key, a.Receipt.Replayed, a.Receipt.Status, a.Receipt.Body,
					b.Receipt.Replayed, b.Receipt.Status, b.Receipt.Body)
			}
			assert.Falsef(t, c.Transition == "open" && strings.HasPrefix(c.Key, "another") == (a.Receipt.Status == 201),
				"%s: answered %d", c.Key, a.Receipt.Status)
		}
	}
	if n := number(t, pool, `SELECT count(*) FROM pawl.instance WHERE (data->>'n')::int <> $1 OR version <> $1 + 1`, each); n != 0 {
		t.Errorf("%d counters are wrong", n)
	}
	assert.Equal(t, int64(rounds*instances), number(t, pool, `SELECT count(*) FROM pawl.instance`), "counters")
	wantSound(t, start(t, pool), pool)
	first.end(t)
	second.end(t)
}

// Two programs play the log, and one of them is killed and started again, over
// and over.
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
		Log:     someEvents(t, 10_000),
		Targets: against(replay.HTTP(nodes.url(0), nodes.client()), replay.HTTP(nodes.url(1), nodes.client())),
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
