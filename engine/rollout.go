package engine

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/build"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/workflow"
)

// A node says every presenceEvery that it serves, and hears what new instances begin with. One
// that has said nothing for presenceLost is taken for lost.
const (
	presenceEvery = 10 * time.Second
	presenceLost  = 3 * presenceEvery
)

// presence tells the database that this node serves, and what it knows.
type presence struct {
	rows     *store.Rollout
	node     string
	build    string
	registry *registry
	log      *slog.Logger
	hearing  sync.Mutex    // what is heard later is applied later
	wanted   chan struct{} // somebody wants to hear now
	end      context.CancelFunc
	work     sync.WaitGroup
}

func newPresence(rows *store.Rollout, node string, r *registry, log *slog.Logger) *presence {
	return &presence{rows: rows, node: node, build: build.This().String(), registry: r, log: log,
		wanted: make(chan struct{}, 1), end: func() {}}
}

// tell says it once, and takes over what new instances begin with.
func (p *presence) tell(ctx context.Context) error {
	var versions []string
	for _, w := range p.registry.All() {
		versions = append(versions, fmt.Sprint(w.Name, " ", w.Version))
	}
	return p.take(func() (map[string]int, error) { return p.rows.Seen(ctx, p.node, versions, p.build) })
}

// take reads what new instances begin with, and takes it over.
func (p *presence) take(read func() (map[string]int, error)) error {
	p.hearing.Lock()
	defer p.hearing.Unlock()
	begins, err := read()
	if err == nil {
		p.registry.Begin(begins)
	}
	return err
}

// want has it told now, and heard, and does not wait for it.
func (p *presence) want() {
	select {
	case p.wanted <- struct{}{}:
	default:
	}
}

// start goes on telling, until stop.
func (p *presence) start() {
	var ctx context.Context
	ctx, p.end = context.WithCancel(context.Background())
	p.work.Go(func() {
		every := time.NewTicker(presenceEvery)
		defer every.Stop()
		for {
			select {
			case <-every.C:
			case <-p.wanted:
			case <-ctx.Done():
				return
			}
			asking, cancel := context.WithTimeout(ctx, presenceEvery)
			if err := p.tell(asking); err != nil && ctx.Err() == nil {
				p.log.Warn("cannot tell the database that this node serves", "error", err)
			}
			cancel()
		}
	})
}

// stop says that the node serves no more. It may be called twice.
func (p *presence) stop(ctx context.Context) {
	p.end()
	p.work.Wait()
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if err := p.rows.Gone(ctx, p.node); err != nil {
		p.log.Debug("cannot tell the database that this node serves no more", "error", err)
	}
}

// BeginVersion says with which version new instances of a workflow begin, on all nodes: with version 0
// the newest that each knows, else the newest that is not newer. It holds at once on this node, and
// within about ten seconds on others. So a version can be brought to all nodes first, and be begun
// when all know it. Instances that have begun stay on their version.
//
// Errors: WorkflowNotFound for a workflow or a version that has never run here, InvalidRequest, Unavailable.
func (e *Engine) BeginVersion(ctx context.Context, name string, version int, actor string) error {
	actor, err := operator(actor, "")
	if err != nil {
		return err
	}
	found, err := e.recordedVersions(ctx)
	if err != nil {
		return err
	}
	if version < 0 || !hasVersion(found, name, version) && e.registry.Find(name, version) == nil {
		return workflow.Errorf(workflow.WorkflowNotFound, "version %d of workflow %q has never run here", version, name)
	}
	if err := e.presence.rows.Begin(ctx, name, version, actor, e.clock.Now()); err != nil {
		return err
	}
	return e.presence.take(func() (map[string]int, error) { return e.presence.rows.Begins(ctx) })
}

// VersionsInUse lists the versions of workflows that have ever run here: which one new instances begin with, how many
// instances each has, and which nodes know it.
//
// Errors: those of Counts.
func (e *Engine) VersionsInUse(ctx context.Context) ([]inspect.Version, error) {
	list, err := e.Rollout(ctx)
	if err != nil {
		return nil, err
	}
	counts, err := e.Counts(ctx, inspect.CountFilter{})
	if err != nil {
		return nil, err
	}
	for i := range list {
		v := &list[i]
		v.Exact = counts.Exact
		for _, c := range counts.Counts {
			if c.Workflow == v.Workflow && c.Definition == v.Version {
				v.Counts, v.Exact = append(v.Counts, c), v.Exact && c.Exact
				if c.Open {
					v.Open += c.Count
				}
			}
		}
	}
	return list, nil
}

// Rollout lists the versions as VersionsInUse does, without how many instances they have, which takes longer to find out.
//
// Error: Unavailable.
func (e *Engine) Rollout(ctx context.Context) ([]inspect.Version, error) {
	list, err := e.recordedVersions(ctx)
	if err != nil {
		return nil, err
	}
	begins, err := e.presence.rows.Begins(ctx)
	if err != nil {
		return nil, err
	}
	nodes, err := e.presence.rows.Nodes(ctx, presenceLost)
	if err != nil {
		return nil, err
	}
	for i := range list {
		v := &list[i]
		_, said := begins[v.Workflow]
		v.Begins = begunVersion(list, begins, v.Workflow) == v.Version
		v.Said = v.Begins && said
		for _, n := range nodes {
			switch {
			case !n.Alive:
			case n.Knows(v.Workflow, v.Version):
				v.Knowing = append(v.Knowing, n.Name)
			default:
				v.Lacking = append(v.Lacking, n.Name)
			}
		}
	}
	return list, nil
}

// begunVersion is the version of the list that new instances of a workflow begin with, where nodes
// know all of them. The list is in order.
func begunVersion(list []inspect.Version, begins map[string]int, name string) (version int) {
	most, given := begins[name]
	for _, v := range list {
		if v.Workflow == name && (version == 0 || !given || v.Version <= most) {
			version = v.Version
		}
	}
	return version
}

func hasVersion(list []inspect.Version, name string, version int) bool {
	for _, v := range list {
		if v.Workflow == name && (version == 0 || v.Version == version) {
			return true
		}
	}
	return false
}

// recordedVersions lists the versions that have run here, in order.
func (e *Engine) recordedVersions(ctx context.Context) ([]inspect.Version, error) {
	stored, err := e.Definitions(ctx)
	list := make([]inspect.Version, len(stored))
	for i, d := range stored {
		list[i] = inspect.Version{Workflow: d.Workflow, Version: d.Version}
	}
	return list, err
}
