package backoff_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/internal/kernel/backoff"
	"github.com/pawlhq/pawl/workflow"
)

func TestSleepEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		assert.Truef(t, backoff.Sleep(t.Context(), time.Minute) && time.Since(begun) == time.Minute, "it ended after %s", time.Since(begun))
		begun = time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		assert.Truef(t, !backoff.Sleep(ctx, time.Minute) && time.Since(begun) == time.Second, "it ended after %s", time.Since(begun))
		assert.False(t, backoff.Sleep(ctx, 0), "after the end of the context")
	})
}

func TestDelayGrowsToItsMax(t *testing.T) {
	r := workflow.Retry{First: time.Millisecond, Max: 10 * time.Millisecond}
	for failures, most := range map[int]time.Duration{1: time.Millisecond, 3: 4 * time.Millisecond, 100: 10 * time.Millisecond} {
		for range 100 {
			assert.LessOrEqual(t, backoff.Delay(r, failures), most)
		}
	}
}
