package pause_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/internal/kernel/pause"
)

func TestItLastsAsLongAsNobodyGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		assert.Truef(t, pause.For(t.Context(), time.Minute) && time.Since(begun) == time.Minute, "it ended after %s", time.Since(begun))
		begun = time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		assert.Truef(t, !pause.For(ctx, time.Minute) && time.Since(begun) == time.Second, "it ended after %s", time.Since(begun))
		assert.False(t, pause.For(ctx, 0), "it was not given up, after its context")
	})
}
