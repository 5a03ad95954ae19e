package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
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

// The node that migrates is killed in the middle of a page, whose other instances have been taken or are being taken, while callers ask
// for the same instances: each is migrated once, and none of what was asked is lost or done twice.
func TestMigration_OnceDespiteKills(t *testing.T) {
	t.Parallel()
	migrateAndKill(t, 300, 2, 4)
}

func TestMigrationOfMany_OnceDespiteKills(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	migrateAndKill(t, 5000, 20, 32)
}

func migrateAndKill(t *testing.T, all, kills, callers int) {
	t.Helper()
	pool := database(t)
	e := start(t, pool, func(c *engine.Config) { c.Workflows = []workflow.Source{firstParcels, secondParcels()} }) // it has no plan
	require.NoError(t, e.Admin().BeginVersion(t.Context(), "parcel", 1, ""))
	list := sendParcels(t, e, all)
	scans := scanParcels(t, e, list, callers)
	defer scans.end()
	for kill := range kills {
		release := holdOneParcel(t, pool, all/(kills+1))
		n := startNode(t, pool, nodeMigrates+"=1")
		await.Eventually(t, "the node comes to an instance that is held", func() bool {
			return number(t, pool, "SELECT count(*) FROM pawl.instance_migration, held WHERE page::text LIKE '%' || held.id || '%'") == 1
		})
		if kill%2 == 1 {
			release() // and so it goes on, however far it comes
		}
		n.kill()
		release()
		lapse(t, pool)
	}
	n := startNode(t, pool, nodeMigrates+"=1")
	m := parcelsMigrated(t, e)
	n.end(t)
	scans.end()
	assert.Truef(t, m.Expected == int64(all) && m.Migrated == int64(all) && m.Skipped+m.Rejected == 0, "of %d: %+v", all, m)
	scans.check(pool, all)
	wantSound(t, e, pool)
}

// The server crashes in the middle of a page, and starts again with what it has written.
func TestMigration_ServerCrash(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	pool := mortal(t)
	e := start(t, pool, func(c *engine.Config) {
		c.Workflows = []workflow.Source{firstParcels, secondParcels(parcelPlan())}
	})
	require.NoError(t, e.Admin().BeginVersion(t.Context(), "parcel", 1, ""))
	const all = 120
	scans := scanParcels(t, e, sendParcels(t, e, all), 2)
	defer scans.end()
	release := holdOneParcel(t, pool, 60)
	require.NoError(t, migrateParcels(t.Context(), e))
	await.Eventually(t, "the node comes to an instance that is held", func() bool {
		return number(t, pool, "SELECT count(*) FROM pawl.instance_migration, held WHERE page::text LIKE '%' || held.id || '%'") == 1
	})
	crash(t, pool) // which releases the lock
	release()
	lapse(t, pool)
	m := parcelsMigrated(t, e)
	assert.Truef(t, m.Migrated == all && m.Skipped+m.Rejected == 0, "%+v", m)
	scans.end()
	scans.check(pool, all)
	wantSound(t, e, pool)
}

// sendParcels begins so many, every third of which rests.
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

// holdOneParcel locks one that is still on version 1, so many after the next one, and notes it in the table held.
func holdOneParcel(t *testing.T, pool *pgxpool.Pool, after int) (release func()) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), "CREATE TABLE IF NOT EXISTS held (id uuid)"); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.ConnectConfig(t.Context(), pool.Config().ConnConfig)
	require.NoError(t, err)
	release = sync.OnceFunc(func() {
		assert.NoError(t, conn.Close(context.Background()))
	})
	t.Cleanup(release)
	tx, err := conn.Begin(t.Context())
	var id uuid.UUID
	if err == nil {
		err = tx.QueryRow(t.Context(), `SELECT id FROM pawl.instance WHERE id = (SELECT id FROM pawl.instance
			WHERE definition = 1 ORDER BY state, updated_at OFFSET $1 LIMIT 1) FOR NO KEY UPDATE`, after-1).Scan(&id)
	}
	if err == nil {
		_, err = pool.Exec(t.Context(), "WITH gone AS (DELETE FROM held) INSERT INTO held VALUES ($1)", id)
	}
	require.NoError(t, err)
	return release
}

// lapse lets the time of the lease pass.
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
		require.Truef(t, err == nil && len(list) <= 1, "%+v, %v", list, err)
		if len(list) == 1 {
			m = list[0]
		}
		return !m.EndedAt.IsZero()
	})
	return m
}

// scanning is callers who scan parcels at random.
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
			for n := 0; !over.Load(); n++ { // what was not done is not asked again
				i := rand.IntN(len(list))
				r, err := e.Submit(ctx, transitions.Command{Workflow: "parcel", Transition: "scan", Key: fmt.Sprint(caller, "-", n), Instance: list[i]})
				if err == nil {
					err = r.Err()
				}
				switch {
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

// check compares every parcel with what was asked of it.
func (s *scanning) check(pool *pgxpool.Pool, all int) {
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
	require.Truef(t, err == nil && len(rows) == all, "%d parcels, want %d: %v", len(rows), all, err)
	scanned := map[uuid.UUID]int64{}
	var sum int64
	for i, id := range s.list {
		scanned[id] = s.done[i].Load()
		sum += scanned[id]
	}
	t.Logf("%d scans meanwhile", sum)
	for _, got := range rows {
		n := scanned[got.ID]
		assert.Equal(t, (row{got.ID, 2, n, true, n + 2, 1, 1}), got)
	}
}
