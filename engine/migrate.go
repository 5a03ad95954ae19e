package engine

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/pawlhq/pawl/engine/internal/migrate"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

const (
	defaultMigrations = 500
	mostMigrations    = 100_000
)

func (e *Engine) newMigrations(node string) *migrate.Runner {
	submit := func(ctx context.Context, list []*decide.Prepared) []transitions.Reply {
		ticket := e.pipeline.Ticket()
		ticket.SubmitMany(ctx, list)
		return ticket.Wait(ctx)
	}
	return migrate.New(migrate.Config{Table: e.migrations, Reader: e.reader, Node: node, Clock: e.clock, Plans: e.registry.Plans(),
		Serving: serving{e}, Submit: submit, Log: e.config.Log, Lease: e.config.Pipeline.LockWait + beyondLocks})
}

// beyondLocks is for how much longer than for a lock the lease of a migration lasts: else another node takes a page over in which one
// instance is locked by a caller's transaction, and waits for it as long.
const beyondLocks = 5 * time.Second

// lacking lists the nodes that serve and do not know a version.
func (e *Engine) lacking(ctx context.Context, name string, version int) (list []string, err error) {
	nodes, err := e.presence.rows.Nodes(ctx, presenceLost)
	for i := range nodes {
		if n := &nodes[i]; n.Alive && !n.Knows(name, version) {
			list = append(list, n.Name)
		}
	}
	return list, err
}

// serving is what a migration asks of the nodes.
type serving struct{ e *Engine }

func (s serving) Lacking(ctx context.Context, name string, version int) ([]string, error) {
	return s.e.lacking(ctx, name, version)
}

// Begins implements migrate.Serving. A node whose program does not report it begins what it was asked to.
func (s serving) Begins(ctx context.Context, name string, version int) (begins bool, changing string, err error) {
	rows := s.e.presence.rows
	nodes, err := rows.Nodes(ctx, presenceLost)
	if err != nil {
		return false, "", err
	}
	asked, err := rows.Begins(ctx) // after the nodes: see presence.takeOver
	if err != nil {
		return false, "", err
	}
	for i := range nodes {
		n := &nodes[i]
		has, confirmed := n.BeginsWith(name)
		switch {
		case !n.Alive || !n.Knows(name, version):
		case n.Begins == nil:
			begins = begins || wouldBegin(n, name, asked[name]) == version
		case !confirmed:
			changing = n.Name
		default:
			begins = begins || has == version
		}
	}
	list, err := s.e.recordedVersions(ctx)
	return begins || begunVersion(list, asked, name) == version, changing, err
}

func (s serving) OpenChanges(ctx context.Context) ([]string, error) {
	return s.e.presence.rows.OpenChanges(ctx)
}

func (s serving) StillOpen(ctx context.Context, list []string) (bool, error) {
	return s.e.presence.rows.StillOpen(ctx, list)
}

// planOf finds a plan of this node. Errors: InvalidRequest; WorkflowNotFound; NotOnThisNode where this node has none.
func (e *Engine) planOf(name string, from, to int) (*workflow.Migration, error) {
	if from < 1 || to < 1 || from == to {
		return nil, workflow.Errorf(workflow.InvalidRequest, "a migration leads from one version to another one; versions count from 1")
	}
	for _, version := range []int{from, to} {
		if _, err := e.Read().Workflow(name, version); err != nil {
			return nil, err
		}
	}
	plans := e.registry.Migrations(name, to)
	at := slices.IndexFunc(plans, func(m *workflow.Migration) bool { return m.From.Version == from })
	if at < 0 {
		return nil, workflow.Errorf(workflow.NotOnThisNode,
			"this node has no plan that takes instances of workflow %q from version %d to version %d", name, from, to)
	}
	return plans[at], nil
}

// PreviewMigration says what a migration would do now with each instance of the version that is under way, of all tenants, and
// writes nothing. It reads all of them.
//
// Errors: InvalidRequest, WorkflowNotFound; NotOnThisNode where this node has no such plan; Unavailable.
func (a *Admin) PreviewMigration(ctx context.Context, name string, from, to int) (inspect.MigrationPreview, error) {
	plan, err := a.e.planOf(name, from, to)
	if err != nil {
		return inspect.MigrationPreview{}, err
	}
	lacking, err := a.e.lacking(ctx, name, to)
	if err != nil {
		return inspect.MigrationPreview{}, err
	}
	p, err := migrate.Preview(ctx, a.e.reader, plan, a.e.clock, a.e.config.Log)
	p.NodesWithout = lacking
	return p, err
}

// MigrateInstances starts a migration of all running instances of a version, of all tenants, to another version, in the background, on one
// of the nodes that have the plan. Each instance has a transition of its own, {workflow}.pawl.migrated, with r's actor and reason. A
// workflow has at most one migration at a time. It continues after a node fails, until each instance is migrated, has ended, or was
// refused; [Admin.Migrations] returns its progress. While a node serves that does not know the version, no instance is migrated.
//
// A request with a key starts one migration: a repetition returns the same one in its current state.
//
// Errors: those of PreviewMigration; Conflict if another migration runs; KeyReused if the key belongs to another migration; InvalidRequest.
func (a *Admin) MigrateInstances(ctx context.Context, r inspect.MigrationRequest) (m inspect.Migration, err error) {
	setDefault(&r.PerSecond, defaultMigrations)
	if r.Actor, err = operator(r.Actor, r.Reason); err != nil {
		return m, err
	}
	if r.PerSecond < 0 || r.PerSecond > mostMigrations {
		return m, workflow.Errorf(workflow.InvalidRequest, "between 1 and %d instances can be taken in a second", mostMigrations)
	}
	if r.Key != "" {
		if err := transitions.CheckKey(r.Key); err != nil {
			return m, err
		}
	}
	if err := checkText("proof of the actor", r.Proof, transitions.MaxProof); err != nil {
		return m, err
	}
	if _, err := a.e.planOf(r.Workflow, r.From, r.To); err != nil {
		return m, err
	}
	open := true
	counts, err := a.Counts(ctx, inspect.CountFilter{Workflow: r.Workflow, Definition: r.From, Open: &open})
	if err != nil {
		return m, err
	}
	m = inspect.Migration{Workflow: r.Workflow, From: r.From, To: r.To, PerSecond: r.PerSecond,
		Actor: r.Actor, Proof: r.Proof, Reason: r.Reason, Key: r.Key, CreatedAt: a.e.clock.Now()}
	for _, c := range counts.Counts {
		m.Expected += c.Count
	}
	if m, err = a.e.migrations.Begin(ctx, m); err == nil {
		a.e.migrating.Wake()
	}
	return m, err
}

// MigrationPlans lists the plans of this node, by workflow and version.
func (a *Admin) MigrationPlans() (list []inspect.MigrationPlan) {
	for _, m := range a.e.registry.Plans() {
		list = append(list, inspect.MigrationPlan{Workflow: m.To.Name, From: m.From.Version, To: m.To.Version})
	}
	slices.SortFunc(list, func(a, b inspect.MigrationPlan) int {
		return cmp.Or(cmp.Compare(a.Workflow, b.Workflow), cmp.Compare(a.To, b.To), cmp.Compare(a.From, b.From))
	})
	return list
}

// maxMigrations is how many migrations are listed.
const maxMigrations = 100

// Migrations lists the newest migrations, the newest first. Error: Unavailable.
func (a *Admin) Migrations(ctx context.Context) ([]inspect.Migration, error) {
	return a.e.migrations.List(ctx, 0, maxMigrations)
}

// Migration is one of them. Errors: NotFound, Unavailable.
func (a *Admin) Migration(ctx context.Context, id int64) (inspect.Migration, error) {
	if id < 1 {
		return inspect.Migration{}, workflow.Errorf(workflow.NotFound, "there is no migration %d", id)
	}
	list, err := a.e.migrations.List(ctx, id, 1)
	if err != nil {
		return inspect.Migration{}, err
	}
	return list[0], nil
}

// StopMigration stops a migration. Migrated instances stay on their new version, and a migration that has ended does not change. It ends at
// once, or when its node has counted the instances in progress; if no node has worked on it for a minute, it ends without counting those.
// The actor and reason of the first request are kept. Errors: those of Migration; InvalidRequest.
func (a *Admin) StopMigration(ctx context.Context, id int64, actor, reason string) (inspect.Migration, error) {
	actor, err := operator(actor, reason)
	if err != nil {
		return inspect.Migration{}, err
	}
	if _, err := a.Migration(ctx, id); err != nil {
		return inspect.Migration{}, err
	}
	if err := a.e.migrations.Stop(ctx, id, a.e.clock.Now(), actor, reason); err != nil {
		return inspect.Migration{}, err
	}
	return a.Migration(ctx, id)
}

// MigrationStats are the counters of what this node did for migrations.
func (a *Admin) MigrationStats() migrate.Stats { return a.e.migrating.Stats() }
