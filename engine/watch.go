package engine

import (
	"context"

	"github.com/pawlhq/pawl/internal/kernel/store"
	"github.com/pawlhq/pawl/transitions"
)

// Watch follows a command on whatever node it is worked on: this node's changes
// are seen at once, those of others within moments, and within a second where
// notifications are lost (more where this node watches more than 8,000 commands). The records have no Request. The Watcher must be
// closed.
func (r *Reader) Watch(ref transitions.Ref) transitions.Watcher {
	ref.Tenant = tenantOr(ref.Tenant)
	if err := store.CheckRef(ref); err != nil {
		return nothing{err}
	}
	return r.e.watch.Watch(ref)
}

// nothing is the Watcher of a command that cannot be.
type nothing struct{ err error }

func (n nothing) Next(context.Context) (transitions.Record, error) {
	return transitions.Record{}, n.err
}
func (n nothing) Close() {}

// Await waits for the end of a command and returns its final answer, wherever it
// was worked on, as Submit would answer a duplicate of it: Replayed.
//
// Errors: CommandNotFound, KeyExpired, ShuttingDown, and TimedOut when ctx ends
// before the command does.
func (e *Engine) Await(ctx context.Context, ref transitions.Ref) (transitions.Receipt, error) {
	ref.Tenant = tenantOr(ref.Tenant)
	if err := store.CheckRef(ref); err != nil {
		return transitions.Receipt{}, err
	}
	return e.watch.Await(ctx, ref)
}
