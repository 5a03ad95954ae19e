package engine

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/engine/internal/inflight"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/kernel/store"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// leaseConns is enough for the polls and heartbeats of a node. They do not share the user's pool: a wait there could lose a lease.
const leaseConns = 2

// leasePool opens a pool for lease holders, with up to conns connections.
func (e *Engine) leasePool(name string, conns int) (*pgxpool.Pool, error) {
	c := e.config.Pool.Config().Copy()
	c.MaxConns, c.MinConns, c.MinIdleConns = int32(conns), 0, 0
	c.ConnConfig.RuntimeParams["application_name"] = name
	pool, err := pgxpool.NewWithConfig(context.Background(), c)
	if err != nil {
		return nil, fmt.Errorf("engine: the pool of %q: %w", name, err)
	}
	e.pools = append(e.pools, pool)
	return pool, nil
}

func (e *Engine) closePools() {
	for _, pool := range e.pools {
		pool.Close()
	}
}

func (e *Engine) newInflight(in func(string) string, node string) (*inflight.Runner, error) {
	pool, err := e.leasePool("pawl in flight", leaseConns)
	if err != nil {
		return nil, err
	}
	return inflight.New(inflight.Config{
		Pool: pool, Callers: e.config.Pool, In: in, Node: node,
		Definitions: e.registry, Workflows: e.registry.Names(), Watchers: e.watch, Clock: e.clock,
		Hint: e.notify.Due, Paused: e.pauses.heard, Log: e.config.Log,
		Recheck: e.config.Recheck, Workers: e.config.InFlight.Workers, Lease: e.config.InFlight.Lease, Every: e.config.pace(),
		Tracer: e.config.Tracer,
	}), nil
}

// heard takes notice of commands that other nodes have changed.
func (e *Engine) heard(commands []uint64) {
	e.watch.Heard(commands)
	e.inflight.Heard(commands)
}

// nodeName returns the unique name under which this engine holds leases. It identifies the process.
func nodeName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s-%d-%s", host, os.Getpid(), uuid.NewString()[:8])
}

// stopComing ends what submits commands, side by side. It leaves half of the time to
// the pipeline, which must commit what they end with, and to the relay.
func (e *Engine) stopComing(ctx context.Context) {
	ctx, cancel := halfOf(ctx)
	defer cancel()
	var both sync.WaitGroup
	both.Go(func() { e.sources.Stop(ctx) })
	both.Go(func() { e.inflight.Stop(ctx) })
	both.Wait()
}

// stopPipeline leaves half of the time to the relay.
func (e *Engine) stopPipeline(ctx context.Context) {
	ctx, cancel := halfOf(ctx)
	defer cancel()
	e.pipeline.Stop(ctx)
}

// halfOf is a context that ends when half of the time is over that ctx has left.
func halfOf(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(deadline)/2)
}

// Cancel requests that a command in flight stops, in the name of the actor by, and returns its record. A scheduled command is not decided.
// A running activity is asked to stop, and its possible effect is undone; it may succeed all the same. A finished command does not change.
//
// Errors: CommandNotFound, ScopeInvalid for Pawl's own commands, InvalidRequest,
// Locked where another transaction holds the command, TimedOut, Unavailable.
func (e *Engine) Cancel(ctx context.Context, ref transitions.Ref, by string) (transitions.Record, error) {
	by, err := operator(by, "")
	if err != nil {
		return transitions.Record{}, err
	}
	if strings.HasPrefix(ref.Scope, transitions.Reserved) {
		return transitions.Record{}, workflow.Errorf(workflow.ScopeInvalid,
			"commands in scopes that begin with %q are Pawl's own; an operator may abandon them when they are stuck", transitions.Reserved)
	}
	ref.Tenant = tenantOr(ref.Tenant)
	if err := store.CheckRef(ref); err != nil {
		return transitions.Record{}, err
	}
	if err := e.inflight.Cancel(ctx, ref, by); err != nil {
		return transitions.Record{}, err
	}
	r, err := e.Read().Command(ctx, ref)
	if err == nil && r.Phase == transitions.InSQL {
		return r, workflow.Errorf(workflow.InProgress, "the command was claimed in SQL; only its holder there can end it")
	}
	return r, err
}

// InFlightStats are the counters of this node's work on commands in flight.
func (a *Admin) InFlightStats() inflight.Stats { return a.e.inflight.Stats() }

// ActivityDurations returns the durations of this node's attempts of activities since its start, by workflow, activity and outcome.
func (a *Admin) ActivityDurations() []inflight.Durations { return a.e.inflight.Durations() }

// Commands lists the commands in flight, with timers: stuck ones, running ones, and those that wait for a worker, for the end of a pause or
// for their time, each ordered by time, activities by activity. The cost of a page is bounded, so a page may have fewer than Limit commands
// although more exist; Page.More reports that. A command that changes meanwhile may be on two pages, or on none.
//
// Errors: InvalidRequest, WorkflowNotFound, Unavailable.
func (a *Admin) Commands(ctx context.Context, f inspect.CommandFilter) (inspect.CommandPage, error) {
	f.Tenant, f.Limit = tenantOr(f.Tenant), pageSize(f.Limit)
	if f.Kind != inspect.CommandsAll && !slices.Contains(inspect.CommandKinds, f.Kind) {
		return inspect.CommandPage{}, workflow.Errorf(workflow.InvalidRequest, "the kind of commands in flight is unknown")
	}
	if err := a.e.checkWorkflow(f.Tenant, f.Workflow); err != nil {
		return inspect.CommandPage{}, err
	}
	return a.e.reader.CommandsInFlight(ctx, f)
}

// errKeyAlone refuses a business key that may be that of several workflows.
var errKeyAlone = workflow.Errorf(workflow.InvalidRequest, "a filter by business key needs the workflow")

// Stuck lists the commands that wait for an operator, the longest waiting first,
// with the business keys of their instances, and says whether there are more.
//
// Errors: InvalidRequest, WorkflowNotFound, Unavailable.
func (a *Admin) Stuck(ctx context.Context, f inspect.StuckFilter) (list []transitions.Record, more bool, err error) {
	f.Tenant, f.Limit = tenantOr(f.Tenant), pageSize(f.Limit)
	if err := a.e.checkWorkflow(f.Tenant, f.Workflow); err != nil {
		return nil, false, err
	}
	if f.BusinessKey != "" {
		if f.Workflow == "" {
			return nil, false, errKeyAlone
		}
		if err := checkText("business key", f.BusinessKey, workflow.MaxBusinessKey); err != nil {
			return nil, false, err
		}
		f.Instance = transitions.InstanceID(f.Tenant, f.Workflow, f.BusinessKey)
	}
	return a.e.reader.Stuck(ctx, f)
}
