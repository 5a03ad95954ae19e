// Package pause waits with a context.
package pause

import (
	"context"
	"time"
)

// For waits for d and reports whether ctx is still not done. It returns at once when ctx is done.
func For(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
