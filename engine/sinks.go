package engine

import (
	"context"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/kernel/outbox"
	"github.com/pawlhq/pawl/outbox/relay"
	"github.com/pawlhq/pawl/schedule"
	"github.com/pawlhq/pawl/transitions"
)

// relayConns are enough for the relay's polls and for what it stores of the sinks, of which each stores one batch at a time.
const relayConns = 2

func (e *Engine) newRelay(log *outbox.Table, node string) (*relay.Relay, error) {
	pool, err := e.leasePool("pawl relay", relayConns+len(e.config.Sinks))
	if err != nil {
		return nil, err
	}
	return relay.New(relay.Config{
		Pool: pool, Events: log, Feed: e.feed, Node: node, Workflows: e.registry.All(), Peers: e.notify, Log: e.config.Log,
		Every: min(e.config.pace(), e.config.SinkLease/pollsPerLease), Lease: e.config.SinkLease, Sinks: e.config.Sinks,
		Tracer: e.config.Tracer,
	})
}

// committed takes in a commit of this node.
func (e *Engine) committed(tenant string, head int64, events func() []transitions.Event) {
	e.feed.Committed(tenant, head, events)
	e.relay.NoteHead(tenant, head)
	if e.schedules == nil {
		return
	}
	for _, event := range events() {
		if event.Workflow == schedule.Name {
			e.schedules.Wake()
			return
		}
	}
}

// headHeard takes in another node's commit.
func (e *Engine) headHeard(tenant string, head int64) {
	e.feed.NoteHead(tenant, head)
	e.relay.NoteHead(tenant, head)
}

// SinkStats are the counters of this node's deliveries to sinks.
func (a *Admin) SinkStats() relay.Stats { return a.e.relay.Stats() }

// The methods below are for operators. They concern the sinks that any node of the database has, or has had; they need no started engine.
// Nodes know of a change at once when they receive this engine's notifications, and otherwise within seconds. The errors are
// *workflow.Error: NotFound for a sink that no node has ever had, InvalidRequest, Unavailable.

// Sinks returns the state of the sinks, by name. With a tenant it returns the sinks that get its events, and Behind, Lag, Oldest, Stuck,
// DeadLetters and Aside count its events alone. The tenant "" selects all tenants, and reads the last positions of all logs.
func (a *Admin) Sinks(ctx context.Context, tenant string) ([]inspect.SinkInfo, error) {
	return a.e.sinks.Sinks(ctx, tenant)
}

// SinkCursors tells how far a sink is in each tenant's log, by tenant, and whether there are more.
func (a *Admin) SinkCursors(ctx context.Context, f inspect.CursorFilter) (list []inspect.SinkCursor, more bool, err error) {
	return a.e.sinks.Cursors(ctx, f)
}

// DeadLetters lists events that their sink's cursor has passed without their
// delivery, by tenant, instance and position, and says whether there are more.
func (a *Admin) DeadLetters(ctx context.Context, f inspect.DeadFilter, p inspect.DeadPage) (
	list []inspect.DeadLetter, more bool, err error,
) {
	return a.e.sinks.DeadLetters(ctx, f, p)
}

// Redrive lets dead letters be delivered again, with the ids that they have, in the order of the log for each instance. It returns how
// many. Of a filter without a status these are the ones that wait for an operator; those that were skipped or redriven can be named by
// their status.
func (a *Admin) Redrive(ctx context.Context, f inspect.DeadFilter, by, reason string) (int64, error) {
	n, err := a.e.sinks.Redrive(ctx, f, by, reason)
	a.e.sinksChanged()
	return n, err
}

// SkipDead says of dead letters that they are never to be delivered. It returns how many. Of a filter without a status these are the ones
// that wait for an operator; those that are tried again can be named by theirs, and one that is under way may arrive all the same. A reason
// is required.
func (a *Admin) SkipDead(ctx context.Context, f inspect.DeadFilter, by, reason string) (int64, error) {
	n, err := a.e.sinks.Skip(ctx, f, by, reason)
	a.e.sinksChanged()
	return n, err
}

// PauseSink lets nothing more be delivered to a sink, for any tenant: what is under
// way comes to its end. A sink that is paused stays as it is.
func (a *Admin) PauseSink(ctx context.Context, sink, by, reason string) error {
	defer a.e.sinksChanged()
	return a.e.sinks.Pause(ctx, sink, by, reason)
}

// ResumeSink ends a pause.
func (a *Admin) ResumeSink(ctx context.Context, sink string) error {
	defer a.e.sinksChanged()
	return a.e.sinks.Resume(ctx, sink)
}

// ForgetSink gives a sink up: its cursors and its dead letters are deleted, and retention waits for it no longer. It has to be out of the
// configuration of every node first: one that has it makes it known again when it is started, and it begins anew. InvalidRequest while a
// node delivers to it.
func (a *Admin) ForgetSink(ctx context.Context, sink string) error {
	return a.e.sinks.Forget(ctx, sink)
}

// MoveSink puts a sink's cursor in a tenant's log to a position: back, so that everything after it is delivered again, or forward, so that
// what is in between never is; then a reason is required. Going back forgets the dead letters after the position, which will be delivered
// again with the rest. The deliveries that are under way may arrive all the same.
func (a *Admin) MoveSink(ctx context.Context, sink, tenant string, position int64, by, reason string) error {
	defer a.e.sinksChanged()
	return a.e.sinks.Move(ctx, sink, tenant, position, by, reason)
}

// sinksChanged makes all nodes poll how the sinks stand.
func (e *Engine) sinksChanged() {
	e.relay.Wake()
	e.notify.Sinks()
}
