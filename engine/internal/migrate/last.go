package migrate

import (
	"context"
	"fmt"
	"time"

	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/internal/kernel/store"
)

// lastLook is the look at all instances of the version after a moment from which on none begins: whenever they have begun. It is made
// when every transaction has ended that was open at that moment, because one may commit an instance that was decided before.
type lastLook struct {
	open  []string  // those transactions; nil: they have ended
	since time.Time // the moment, by the clock of this process
}

// awaitOpen says when to ask again whether the transactions have ended that the last look waits for. It gives the batch back where
// that takes long.
func (r *Runner) awaitOpen(ctx context.Context) (time.Duration, error) {
	if r.last == nil || r.last.open == nil {
		return 0, nil
	}
	open, err := r.config.Serving.StillOpen(ctx, r.last.open)
	switch {
	case err != nil:
		return 0, err
	case !open:
		r.last.open = nil
		return 0, nil
	case time.Since(r.last.since) > closeWithin:
		return 0, r.give(ctx, again, "transactions are open that may have written an instance of the version; it ends when they have ended")
	}
	return closePoll, nil
}

// finishBeside ends a batch from the version that new instances begin with, and writes down how many have begun since.
func (r *Runner) finishBeside(ctx context.Context, b *batch) error {
	since := 0
	look := &store.OpenLook{Workflow: b.Workflow, Definition: b.From, Scope: decide.MigrationScope(b.ID), Limit: previewed}
	for since < mostSince {
		list, err := r.config.Reader.OpenInstances(ctx, look)
		if err != nil {
			return err
		}
		if len(list) == 0 {
			break
		}
		since += len(list)
	}
	return r.finish(ctx, b, since, fmt.Sprintf("new instances begin with version %d", b.From))
}
