// Package backoff waits between attempts.
package backoff

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/pawlhq/pawl/workflow"
)

// Delay returns a random delay after a number of consecutive failures, from 1. It is at most the ceiling of r ("full jitter").
func Delay(r workflow.Retry, failures int) time.Duration { return rand.N(r.Ceiling(failures) + 1) }

// Wait sleeps for the delay after a number of failures. It reports whether it did, like [Sleep].
func Wait(ctx context.Context, r workflow.Retry, failures int) bool {
	return Sleep(ctx, Delay(r, failures))
}

// Sleep waits for d and reports true. It reports false as soon as ctx has ended.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
