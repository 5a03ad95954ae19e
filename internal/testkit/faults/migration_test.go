package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

type parcel1 struct {
	Scans int `json:"scans"`
}

type parcel2 struct {
	Scanned int  `json:"scanned"`
	Moved   bool `json:"moved"` // it began under version 1
}

// parcels are scanned again and again. In version 2 their data has another shape, and one of their states another name.
func parcels[D any](version int, scan func(*D), rest workflow.State, plans ...workflow.Plan[D]) *workflow.Definition[D] {
	do := func(_ *workflow.Call, d *D, _ workflow.None) error { scan(d); return nil }
	nothing := func(*workflow.Call, *D, workflow.None) error { return nil }
	return workflow.Define("parcel", version,
		workflow.Start("send", "moving", nothing),
		workflow.On("scan", workflow.From("moving", rest), workflow.Stay, do),
		workflow.On("rest", workflow.From("moving"), rest, nothing),
		workflow.On("end", workflow.From("moving", rest), "delivered", nothing),
	).Final("delivered").Migrate(plans...)
}

var firstParcels = parcels(1, func(d *parcel1) { d.Scans++ }, "resting")

func secondParcels(plans ...workflow.Plan[parcel2]) workflow.Source {
	return parcels(2, func(d *parcel2) { d.Scanned++ }, "stored", plans...)
}

func parcelPlan() workflow.Plan[parcel2] {
	return workflow.FromVersion(1, func(old parcel1) (parcel2, error) { return parcel2{Scanned: old.Scans, Moved: true}, nil }).
		State("resting", "stored")
}

// nodeMigrates makes a node one that migrates parcels.
const nodeMigrates = "PAWL_FAULTS_NODE_MIGRATES"

// migrateParcels begins the migration, if no node before has.
func migrateParcels(ctx context.Context, e *engine.Engine) error {
	list, err := e.Admin().Migrations(ctx)
	if err != nil || len(list) > 0 {
		return err
	}
	_, err = e.Admin().MigrateInstances(ctx,
		inspect.MigrationRequest{Workflow: "parcel", From: 1, To: 2, PerSecond: 100_000, Actor: "ann", Reason: "stored"})
	return err
}

// The migrating node is repeatedly killed within a page while callers change the same instances. Each instance is migrated once, and every
// command has one effect.
func TestMigration_OnceDespiteKills(t *testing.T) {
	t.Parallel()
	all, kills, callers := 300, 2, 4
	if os.Getenv("PAWL_FULL") != "" {
		all, kills, callers = 5000, 20, 32
	}
	pool := database(t)
	e := start(t, pool, func(c *engine.Config) { c.Workflows = []workflow.Source{firstParcels, secondParcels()} }) // it has no plan
	require.NoError(t, e.Admin().BeginVersion(t.Context(), "parcel", 1, ""))
	list := sendParcels(t, e, all)
	scans := scanParcels(t, e, list, callers)
	defer scans.end()
	for kill := range kills {
		release := holdOneParcel(t, pool, all/(kills+1))
		n := startNode(t, pool, nodeMigrates+"=1")
		awaitHeldParcel(t, pool)
		if kill%2 == 1 {
			release() // the node continues
		}
		n.kill()
		release()
		lapse(t, pool)
	}
	n := startNode(t, pool, nodeMigrates+"=1")
	m := parcelsMigrated(t, e)
	n.end(t)
	scans.end()
	assert.Equal(t, [...]int64{int64(all), int64(all), 0, 0}, [...]int64{m.Expected, m.Migrated, m.Skipped, m.Rejected})
	scans.check(pool)
	wantSound(t, e, pool)
}

// sendParcels creates parcels, every third of which rests.
func sendParcels(t *testing.T, e *engine.Engine, all int) (list []uuid.UUID) {
	t.Helper()
	var sent, rested []transitions.Command
	for i := range all {
		sent = append(sent, transitions.Command{Workflow: "parcel", Transition: "send", Key: fmt.Sprint(i)})
	}
	for i, r := range doneAll(t, e, sent) {
		if list = append(list, r.Receipt.Instance); i%3 == 0 {
			rested = append(rested, transitions.Command{Workflow: "parcel", Transition: "rest", Key: "rest", Instance: r.Receipt.Instance})
		}
	}
	doneAll(t, e, rested)
	return list
}

func doneAll(t *testing.T, e *engine.Engine, commands []transitions.Command) []transitions.Reply {
	t.Helper()
	replies := e.SubmitMany(underLoad(t), commands)
	for _, r := range replies {
		require.NoError(t, errors.Join(r.Err, r.Receipt.Err()))
	}
	return replies
}

// holdOneParcel locks a parcel of version 1, the given number after the next one, and stores its id in the table held.
func holdOneParcel(t *testing.T, pool *pgxpool.Pool, after int) (release func()) {
	t.Helper()
	_, err := pool.Exec(t.Context(), "CREATE TABLE IF NOT EXISTS held (id uuid)")
	require.NoError(t, err)
	conn, err := pgx.ConnectConfig(t.Context(), pool.Config().ConnConfig)
	require.NoError(t, err)
	release = sync.OnceFunc(func() {
		assert.NoError(t, conn.Close(context.Background()))
	})
	t.Cleanup(release)
	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	var id uuid.UUID
	require.NoError(t, tx.QueryRow(t.Context(), `SELECT id FROM pawl.instance WHERE id = (SELECT id FROM pawl.instance
		WHERE definition = 1 ORDER BY state, updated_at OFFSET $1 LIMIT 1) FOR NO KEY UPDATE`, after-1).Scan(&id))
	_, err = pool.Exec(t.Context(), "WITH gone AS (DELETE FROM held) INSERT INTO held VALUES ($1)", id)
	require.NoError(t, err)
	return release
}

// awaitHeldParcel waits until a node migrates the page of the held parcel.
func awaitHeldParcel(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	await.Eventually(t, "the node comes to the held parcel", func() bool {
		return number(t, pool, "SELECT count(*) FROM pawl.instance_migration, held WHERE page::text LIKE '%' || held.id || '%'") == 1
	})
}

// lapse expires the lease of the migration.
func lapse(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	const sql = "UPDATE pawl.instance_migration SET locked_until = clock_timestamp() - interval '1 s' WHERE locked_until IS NOT NULL"
	_, err := pool.Exec(t.Context(), sql)
	require.NoError(t, err)
}

func parcelsMigrated(t *testing.T, e *engine.Engine) (m inspect.Migration) {
	t.Helper()
	await.Eventually(t, "the migration has ended", func() bool {
		list, err := e.Admin().Migrations(t.Context())
		require.NoError(t, err)
		if len(list) > 0 {
			m = list[0]
		}
		return len(list) == 1 && !m.EndedAt.IsZero()
	})
	return m
}

// scanning counts the scans of random parcels by concurrent callers.
type scanning struct {
	t    *testing.T
	done []atomic.Int64 // of each parcel
	list []uuid.UUID
	end  func()
}

func scanParcels(t *testing.T, e *engine.Engine, list []uuid.UUID, callers int) *scanning {
	s := &scanning{t: t, done: make([]atomic.Int64, len(list)), list: list}
	ctx := underLoad(t)
	var over atomic.Bool
	var work sync.WaitGroup
	for caller := range callers {
		work.Go(func() {
			for n := 0; !over.Load(); n++ { // failed scans are not repeated
				i := rand.IntN(len(list))
				r, err := e.Submit(ctx, transitions.Command{Workflow: "parcel", Transition: "scan", Key: fmt.Sprint(caller, "-", n), Instance: list[i]})
				switch err = errors.Join(err, r.Err()); {
				case err == nil:
					s.done[i].Add(1)
				case !workflow.CodeOf(err).Info().Retry || ctx.Err() != nil:
					t.Errorf("scan: %v", err)
					return
				}
				await.Pass("callers leave some of the machine", time.Millisecond)
			}
		})
	}
	s.end = func() { over.Store(true); work.Wait() }
	return s
}

// check compares every parcel with the number of its scans.
func (s *scanning) check(pool *pgxpool.Pool) {
	t := s.t
	const sql = `SELECT i.id, i.definition, (i.data->>'scanned')::int, i.data->>'moved' = 'true', i.version - (i.state = 'stored')::int,
	(SELECT count(*) FROM pawl.audit a WHERE a.tenant = i.tenant AND a.instance = i.id AND a.transition = 'pawl.migrated'),
	(SELECT count(*) FROM pawl.outbox o WHERE o.tenant = i.tenant AND o.instance = i.id AND o.type = 'parcel.pawl.migrated')
FROM pawl.instance i`
	type row struct {
		ID            uuid.UUID
		Definition    int
		Scanned       int64
		Moved         bool
		Version       int64
		Audit, Events int
	}
	found, err := pool.Query(t.Context(), sql)
	require.NoError(t, err)
	rows, err := pgx.CollectRows(found, pgx.RowToStructByPos[row])
	require.NoError(t, err)
	require.Len(t, rows, len(s.list))
	scanned := map[uuid.UUID]int64{}
	for i, id := range s.list {
		scanned[id] = s.done[i].Load()
	}
	for _, got := range rows {
		n := scanned[got.ID]
		assert.Equal(t, (row{got.ID, 2, n, true, n + 2, 1, 1}), got)
	}
}
