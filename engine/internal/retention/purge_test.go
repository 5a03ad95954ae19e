package retention

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestPurge_BusyPipeline(t *testing.T) {
	idle, busy := fit(1000, target, 0, 5000), fit(1000, target, 1, 5000)
	assert.Truef(t, idle == 1000 && busy == 500, "batches of %d and %d", idle, busy)
	assert.Truef(t, pause(target, 0) == target && pause(target, 1) == 10*target && pause(time.Minute, 1) == longest,
		"pauses of %s, %s and %s", pause(target, 0), pause(target, 1), pause(time.Minute, 1))
	assert.Equal(t, smallest, fit(60, time.Minute, 1, 5000), "a batch of")
	assert.Equal(t, 1500, fit(1000, time.Millisecond, 0, 1500), "a batch of")
}

// Else a pipeline that is always busy would let the tables grow without end.
func TestPurge_LongBacklog(t *testing.T) {
	for behind, want := range map[time.Duration]float64{0: 0.8, patience / 2: 0.4, patience: 0, 3 * patience: 0} {
		got := yielding(0.8, behind)
		assert.Truef(t, got == want, "after %s it gives way by %v, want %v", behind, got, want)
	}
	assert.True(t, yielding(-1, 0) == 0 && yielding(7, 0) == 1, "how busy the pipeline is may be out of bounds")
}
