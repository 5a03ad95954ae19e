package engine

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/kernel/store"
	"github.com/pawlhq/pawl/workflow"
)

// A node says every presenceEvery that it serves, and hears what new instances begin with. One
// that has said nothing for presenceLost is taken for lost.
const (
	presenceEvery = 10 * time.Second
	presenceLost  = 3 * presenceEvery
)

// presence records that this node serves, what it knows, and what new instances begin with on it.
type presence struct {
	rows     *store.Rollout
	node     string
	build    string
	registry *registry
	drain    func(ctx context.Context) error // waits for the decisions that have begun before
	log      *slog.Logger

	taking    sync.Mutex
	serves    bool     // it has a row, or had one
	holds     bool     // what is confirmed has not been withdrawn
	confirmed []string // what new instances begin with, as the row has it

	wanted chan struct{} // a token: take over what new instances begin with now
	end    context.CancelFunc
	work   sync.WaitGroup
}

// tell records that the node serves, and takes over what new instances begin with.
func (p *presence) tell(ctx context.Context) error {
	p.taking.Lock()
	defer p.taking.Unlock()
	var versions []string
	for _, w := range p.registry.All() {
		versions = append(versions, fmt.Sprint(w.Name, " ", w.Version))
	}
	p.serves = true
	begins, err := p.rows.Seen(ctx, p.node, versions, p.build, p.confirmed)
	if err != nil || p.holds && p.registry.Begun(begins) {
		return err
	}
	return p.takeOver(ctx)
}

// take reads what new instances begin with, and takes it over. On an engine that does not serve, that is all.
func (p *presence) take(ctx context.Context) error {
	p.taking.Lock()
	defer p.taking.Unlock()
	if p.serves {
		return p.takeOver(ctx)
	}
	begins, err := p.rows.Begins(ctx)
	if err == nil {
		p.registry.Begin(begins)
	}
	return err
}

// takeOver withdraws the confirmation before it reads, so that no change is confirmed by what an earlier one has left; and confirms
// when every creation that was decided before is written or refused.
func (p *presence) takeOver(ctx context.Context) error {
	p.holds, p.confirmed = false, []string{}
	if err := p.rows.Confirm(ctx, p.node, p.confirmed); err != nil {
		return err
	}
	begins, err := p.rows.Begins(ctx)
	if err != nil {
		return err
	}
	p.registry.Begin(begins)
	if err := p.drain(ctx); err != nil {
		return err
	}
	now := p.registry.Begins()
	if err := p.rows.Confirm(ctx, p.node, now); err != nil {
		return err
	}
	p.holds, p.confirmed = true, now
	return nil
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

// confirmWithin is how long BeginVersion waits for the nodes: longer than a node that has failed is taken for one that serves.
const confirmWithin = presenceLost + presenceEvery

const (
	confirmPoll = 25 * time.Millisecond // how often it is asked which nodes have confirmed
	confirmHint = 40                    // after how many polls nodes are notified again, which may not have listened before
)

// BeginVersion sets the version that new instances of a workflow begin with, on all nodes: with version 0 the newest that each
// knows, else the newest that is not newer. So a version can be brought to all nodes first, and be begun when all know it. Instances
// that have begun stay on their version.
//
// It returns when every node that serves has confirmed: no command that is decided afterwards begins another version, and those
// that were decided before are committed, except in a transaction of a caller's that is still open. That takes less than a second
// with notifications, and about ten seconds without. A node that has reported nothing for half a minute is not waited for.
//
// Errors: WorkflowNotFound for a workflow or a version that has never run here, InvalidRequest, Unavailable; TimedOut names the nodes
// that have not confirmed: the version is set, and holds there later.
func (a *Admin) BeginVersion(ctx context.Context, name string, version int, actor string) error {
	actor, err := operator(actor, "")
	if err != nil {
		return err
	}
	found, err := a.e.recordedVersions(ctx)
	if err != nil {
		return err
	}
	known := slices.ContainsFunc(found, func(v inspect.WorkflowVersion) bool {
		return v.Workflow == name && (version == 0 || v.Version == version)
	})
	if version < 0 || !known && a.e.registry.Find(name, version) == nil {
		return workflow.Errorf(workflow.WorkflowNotFound, "version %d of workflow %q has never run here", version, name)
	}
	changed, err := a.e.presence.rows.Begin(ctx, name, version, actor, a.e.clock.Now())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, confirmWithin)
	defer cancel()
	if err := a.e.presence.take(ctx); err != nil {
		return err
	}
	return a.e.awaitBegun(ctx, name, version, changed)
}

// awaitBegun waits until every node that serves has confirmed.
func (e *Engine) awaitBegun(ctx context.Context, name string, version int, changed time.Time) error {
	for poll := 0; ; poll++ {
		if poll%confirmHint == 0 {
			e.notify.Begins()
			e.notify.Flush()
		}
		nodes, err := e.presence.rows.Nodes(ctx, presenceLost)
		if err != nil && ctx.Err() == nil {
			return err
		}
		var missing []string
		for i := range nodes {
			n := &nodes[i]
			begins, confirmed := n.BeginsWith(name)
			switch {
			case !n.Alive:
			case n.Begins == nil && n.SeenAt.After(changed): // its program does not confirm, but has read it
			case n.Begins != nil && confirmed && begins == wouldBegin(n, name, version):
			default:
				missing = append(missing, n.Name)
			}
		}
		if err == nil && len(missing) == 0 {
			return nil
		}
		select {
		case <-time.After(confirmPoll):
		case <-ctx.Done():
			return workflow.Errorf(workflow.TimedOut, "the version is set, but these nodes have not confirmed it yet: %s",
				strings.Join(missing, ", "))
		}
	}
}

// wouldBegin returns the version that new instances of a workflow begin with on a node where at most this one is asked for; 0 asks for
// the newest.
func wouldBegin(n *inspect.Node, name string, most int) (version int) {
	oldest := 0
	for _, known := range known(n.Versions) { // in order
		if known.Workflow != name {
			continue
		}
		if oldest == 0 {
			oldest = known.Version
		}
		if most == 0 || known.Version <= most {
			version = known.Version
		}
	}
	return cmp.Or(version, oldest)
}

// VersionsInUse lists the versions of workflows that have ever run here: which one new instances begin with, how many
// instances each has, and which nodes know it.
//
// Errors: those of Counts.
func (a *Admin) VersionsInUse(ctx context.Context) ([]inspect.WorkflowVersion, error) {
	list, err := a.Rollout(ctx)
	if err != nil {
		return nil, err
	}
	counts, err := a.Counts(ctx, inspect.CountFilter{})
	if err != nil {
		return nil, err
	}
	for i := range list {
		v := &list[i]
		v.Exact = counts.Exact
		for _, c := range counts.Counts {
			if c.Workflow == v.Workflow && c.Definition == v.Version {
				v.States = append(v.States, inspect.StateCount{State: c.State, Open: c.Open, Count: c.Count, Exact: c.Exact})
				v.Exact = v.Exact && c.Exact
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
func (a *Admin) Rollout(ctx context.Context) ([]inspect.WorkflowVersion, error) {
	list, err := a.e.recordedVersions(ctx)
	if err != nil {
		return nil, err
	}
	begins, err := a.e.presence.rows.Begins(ctx)
	if err != nil {
		return nil, err
	}
	nodes, err := a.e.presence.rows.Nodes(ctx, presenceLost)
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
				v.Nodes = append(v.Nodes, n.Name)
			default:
				v.NodesWithout = append(v.NodesWithout, n.Name)
			}
		}
	}
	return list, nil
}

// begunVersion is the version of the list that new instances of a workflow begin with, where nodes know all of them. The list is in order.
func begunVersion(list []inspect.WorkflowVersion, begins map[string]int, name string) (version int) {
	most, given := begins[name]
	for _, v := range list {
		if v.Workflow == name && (version == 0 || !given || v.Version <= most) {
			version = v.Version
		}
	}
	return version
}

// recordedVersions lists the versions that have run here, in order.
func (e *Engine) recordedVersions(ctx context.Context) ([]inspect.WorkflowVersion, error) {
	stored, err := e.Admin().Definitions(ctx)
	list := make([]inspect.WorkflowVersion, len(stored))
	for i, d := range stored {
		list[i] = inspect.WorkflowVersion{Workflow: d.Workflow, Version: d.Version}
	}
	return list, err
}
