package stream

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/pawlhq/pawl/internal/pause"
	"github.com/pawlhq/pawl/workflow"
)

// The pauses of a reader while the database cannot be reached.
const (
	firstBackoff = 250 * time.Millisecond
	lastBackoff  = 5 * time.Second
)

// persistently asks for what comes next. While the database cannot be reached,
// it waits, renews the reader and asks again. Its error is the context's, or an
// *workflow.Error.
func persistently[T any](ctx context.Context, log *slog.Logger, next func() (T, error), renew func()) (T, error) {
	for backoff := firstBackoff; ; backoff = min(2*backoff, lastBackoff) {
		got, err := next()
		if err == nil {
			return got, nil
		}
		if ctx.Err() != nil {
			return got, ctx.Err()
		}
		if workflow.CodeOf(err) != workflow.Unavailable {
			return got, err
		}
		log.DebugContext(ctx, "stream: a reader waits for the database", "error", err)
		if !pause.For(ctx, backoff/2+rand.N(backoff/2)) {
			return got, ctx.Err()
		}
		renew()
	}
}
