// Package pause waits, for as long as nobody gives up.
package pause

import (
	"context"
	"time"
)

// For waits. It is false, and at once, when ctx ends before or has ended.
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
