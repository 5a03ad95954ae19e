package pause_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlhq/pawl/internal/kernel/pause"
)

func TestItLastsAsLongAsNobodyGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		if !pause.For(t.Context(), time.Minute) || time.Since(begun) != time.Minute {
			t.Errorf("it ended after %s", time.Since(begun))
		}
		begun = time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if pause.For(ctx, time.Minute) || time.Since(begun) != time.Second {
			t.Errorf("it ended after %s", time.Since(begun))
		}
		if pause.For(ctx, 0) {
			t.Error("it was not given up, after its context")
		}
	})
}
