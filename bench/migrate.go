package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/kernel/backoff"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

const (
	migratedEachSecond = 500
	migratedEachKill   = 5000
	killedIdle         = 2
	migratingNodes     = 2 // running at once: one that migrates, and one that takes over when it is killed
)

// amid is the measurement of a migration during a scenario's commands.
type amid struct {
	without  float64 // the p99 of the same commands at the same rate, in ms: the mean of before and after, by their time
	idle     float64 // the p99 where nodes are killed as often that do nothing
	migrated float64 // instances a second, from the beginning to the end, with the nodes' starts
	kills    int
}

// orderPlan takes orders to version 2, with data that is read and written anew.
func orderPlan() workflow.Plan[orderData] {
	return workflow.FromVersion(1, func(old orderData) (orderData, error) { return old, nil })
}

// migratingAlone is a node that takes all orders to version 2 as fast as it can, and does nothing else. Its commands are the instances.
func migratingAlone(name string) *scenario {
	return &scenario{name: name, run: func(ctx context.Context, e *env) (*sample, error) {
		eng, err := e.engine(ctx, engine.Config{Workflows: []workflow.Source{orders(2, askNothing).Migrate(orderPlan())}}, false)
		if err == nil {
			err = beginMigration(ctx, eng, 100_000)
		}
		if err != nil {
			return nil, err
		}
		m, err := migratedUntil(ctx, eng, ended)
		took := m.EndedAt.Sub(m.CreatedAt)
		return &sample{all: m.Migrated, commands: m.Migrated, took: took, latency: latencyOf([]time.Duration{took})}, err
	}}
}

// migratingAmid is a scenario of callers that flip any of Config.Migrated orders at half of their former rate, while another node migrates
// the orders to version 2. That node is killed repeatedly, and another takes over. Before that idle nodes are killed, to subtract their
// cost to the callers from that of the migration.
func migratingAmid(name string, n int) *scenario {
	return &scenario{name: name, run: func(ctx context.Context, e *env) (*sample, error) {
		whole, placed, err := e.more(ctx, max(e.Migrated, len(e.orders)))
		if err != nil {
			return nil, err
		}
		nodes, err := e.standby(ctx, 1+max(1, len(whole.orders)/migratedEachKill), migratingNodes)
		if err != nil {
			return nil, err
		}
		idle, err := e.standby(ctx, killedIdle, killedIdle)
		if err != nil {
			return nil, err
		}
		eng, err := e.engine(ctx, engine.Config{Workflows: []workflow.Source{orders(2, askNothing)}}, false) // it has no plan
		if err != nil {
			return nil, err
		}
		list := submitters(whole, eng, n, flipsAtRandom)
		peak, err := e.drive(ctx, list)
		if err != nil {
			return nil, err
		}
		// As long as an undisturbed migration takes, before and after: events that also occur without it, such as autovacuum and checkpoints, are
		// in both figures.
		alone := max(purgeTimes*e.Duration, time.Duration(len(whole.orders))*time.Second/migratedEachSecond/2)
		before, err := phase(ctx, list, peak.rate()/2, alone)
		if err != nil {
			return nil, err
		}
		killing, err := beside(ctx, list, peak.rate()/2, func(ctx context.Context) error {
			return killEvenly(ctx, idle, purgeTimes*e.Duration)
		})
		if err != nil {
			return nil, err
		}
		started := len(nodes)
		var m inspect.Migration
		s, err := beside(ctx, list, peak.rate()/2, func(ctx context.Context) (err error) {
			m, err = e.migrateAndKill(ctx, eng, len(whole.orders), nodes)
			return err
		})
		if err != nil {
			return nil, err
		}
		after, err := phase(ctx, list, peak.rate()/2, max(alone, s.took-before.took))
		if err != nil {
			return nil, err
		}
		s.all += placed + peak.all + before.all + killing.all + after.all + m.Migrated
		s.amid = &amid{without: meanP99(before, after), idle: p99(killing), kills: started - len(nodes),
			migrated: float64(m.Migrated) / m.EndedAt.Sub(m.CreatedAt).Seconds()}
		return s, e.verifyMigrated(ctx, eng, int64(len(whole.orders)))
	}}
}

// meanP99 is that of some phases, by their time.
func meanP99(phases ...*sample) (mean float64) {
	var took float64
	for _, s := range phases {
		took += s.took.Seconds()
		mean += p99(s) * s.took.Seconds()
	}
	return mean / took
}

// more places orders until there are n, and returns what has them all.
func (e *env) more(ctx context.Context, n int) (whole *env, placed int64, err error) {
	whole = &env{Config: e.Config, orders: make([]order, n)}
	var commands []transitions.Command
	for i := range whole.orders {
		if whole.orders[i] = orderAt(i); i >= len(e.orders) {
			commands = append(commands, placeAt(i))
		}
	}
	eng, err := e.engine(ctx, engine.Config{}, false)
	if err == nil {
		err = many(ctx, eng, commands, false)
		eng.Stop(ctx)
	}
	return whole, int64(len(commands)), errors.Join(err, e.db.settle(ctx, 1))
}

// beside lets callers call at a rate until do has returned.
func beside(ctx context.Context, callers []caller, rate float64, do func(context.Context) error) (*sample, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var over atomic.Bool
	ended := make(chan error, 1)
	go func() {
		err := do(ctx)
		if over.Store(true); err != nil {
			cancel(err)
		}
		ended <- err
	}()
	s, err := phaseUntil(ctx, callers, rate, func(time.Time) bool { return over.Load() })
	if err != nil {
		cancel(err)
	}
	return s, errors.Join(<-ended, err)
}

// standby starts nodes that can migrate, from before anything is measured: to start them takes the processor's time, which the callers
// would wait for. So does each that stands by, for its polls: all but a few are frozen until they are needed.
func (e *env) standby(ctx context.Context, count, awake int) (map[int]*node, error) {
	nodes := map[int]*node{}
	e.later(func() error {
		for _, n := range nodes {
			n.kill()
		}
		return nil
	})
	for range count {
		n, err := startNode(ctx, e.db.url)
		if err != nil {
			return nil, err
		}
		nodes[n.command.Process.Pid] = n
		if len(nodes) > awake {
			if err := n.freeze(); err != nil {
				return nil, err
			}
		}
	}
	return nodes, nil
}

// wakeOne has one of the frozen nodes go on, if there is one.
func wakeOne(nodes map[int]*node) error {
	for _, n := range nodes {
		if n.frozen {
			return n.goOn()
		}
	}
	return nil
}

// killEvenly kills nodes that do nothing, in so long.
func killEvenly(ctx context.Context, nodes map[int]*node, d time.Duration) error {
	apart := d / time.Duration(2*len(nodes))
	for pid, n := range nodes {
		backoff.Sleep(ctx, apart)
		n.kill()
		delete(nodes, pid)
		backoff.Sleep(ctx, apart)
	}
	return ctx.Err()
}

// lapse lets the time of a lease pass.
const lapse = "UPDATE {pawl}.instance_migration SET locked_until = clock_timestamp() - interval '1 s' WHERE locked_until IS NOT NULL"

// migrateAndKill lets nodes migrate; all but one are killed, each when its share is done. The lease of a killed node expires at once: the
// measurement includes takeovers.
func (e *env) migrateAndKill(ctx context.Context, eng *engine.Engine, all int, nodes map[int]*node) (m inspect.Migration, err error) {
	for _, n := range nodes {
		if n.frozen {
			continue
		}
		if _, err := io.WriteString(n.input, "begin\n"); err != nil {
			return m, err
		}
		break
	}
	shares := len(nodes)
	for kill := 1; kill < shares && err == nil; kill++ {
		m, err = migratedUntil(ctx, eng, func(m *inspect.Migration) bool {
			return ended(m) || m.Migrated >= int64(all*kill/shares) && nodes[pidOf(m.Node)] != nil
		})
		pid := pidOf(m.Node)
		if err != nil || ended(&m) {
			break
		}
		nodes[pid].kill()
		delete(nodes, pid)
		err = errors.Join(e.db.exec(ctx, lapse), wakeOne(nodes))
	}
	if err != nil {
		return m, err
	}
	return migratedUntil(ctx, eng, ended)
}

// migrationLimit is how long a migration may take at most.
const migrationLimit = 15 * time.Minute

func ended(m *inspect.Migration) bool { return !m.EndedAt.IsZero() }

// migratedUntil waits until the migration is so far.
func migratedUntil(ctx context.Context, eng *engine.Engine, met func(*inspect.Migration) bool) (m inspect.Migration, err error) {
	err = poll(ctx, 20*time.Millisecond, migrationLimit, "a migration has not come that far", func() (bool, error) {
		list, err := eng.Admin().Migrations(ctx)
		if err != nil || len(list) == 0 {
			return false, err
		}
		m = list[0]
		return met(&m), nil
	})
	return m, err
}

// beginMigration begins one of the orders, if none has been begun.
func beginMigration(ctx context.Context, eng *engine.Engine, perSecond int) error {
	list, err := eng.Admin().Migrations(ctx)
	if err == nil && len(list) == 0 {
		_, err = eng.Admin().MigrateInstances(ctx, inspect.MigrationRequest{Workflow: workflowName, From: 1, To: 2, PerSecond: perSecond,
			Actor: actor, Reason: "the bench measures it"})
	}
	return err
}

// verifyMigrated checks that each instance was migrated once, and that all chains are intact.
func (e *env) verifyMigrated(ctx context.Context, eng *engine.Engine, all int64) error {
	var migrated, instances, there int64
	err := e.db.admin.QueryRow(ctx, e.db.in(`SELECT count(*), count(DISTINCT instance),
	(SELECT count(*) FROM {pawl}.instance WHERE definition = 2) FROM {pawl}.audit WHERE transition = $1`), "pawl.migrated").
		Scan(&migrated, &instances, &there)
	if err == nil && (migrated != all || instances != all || there != all) {
		err = fmt.Errorf("of %d instances %d are on the new version, by %d migrations of %d", all, there, migrated, instances)
	}
	if err != nil {
		return err
	}
	v, err := eng.Admin().Verify(ctx, tenant, uuid.Nil)
	if err == nil && len(v.Broken) > 0 {
		err = fmt.Errorf("the log does not verify: %+v", v.Broken)
	}
	return err
}
