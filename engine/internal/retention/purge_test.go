package retention

import (
	"testing"
	"time"
)

func TestABusyPipelineGetsShorterBatchesAndLongerPauses(t *testing.T) {
	idle, busy := fit(1000, target, 0, 5000), fit(1000, target, 1, 5000)
	if idle != 1000 || busy != 500 {
		t.Errorf("batches of %d and %d", idle, busy)
	}
	if pause(target, 0) != target || pause(target, 1) != 10*target || pause(time.Minute, 1) != longest {
		t.Errorf("pauses of %s, %s and %s", pause(target, 0), pause(target, 1), pause(time.Minute, 1))
	}
	if n := fit(60, time.Minute, 1, 5000); n != smallest {
		t.Errorf("a batch of %d", n)
	}
	if n := fit(1000, time.Millisecond, 0, 1500); n != 1500 {
		t.Errorf("a batch of %d", n)
	}
}

// Else a pipeline that is always busy would let the tables grow without end.
func TestWhoIsLongBehindGivesWayToNobody(t *testing.T) {
	for behind, want := range map[time.Duration]float64{0: 0.8, patience / 2: 0.4, patience: 0, 3 * patience: 0} {
		if got := yielding(0.8, behind); got != want {
			t.Errorf("after %s it gives way by %v, want %v", behind, got, want)
		}
	}
	if yielding(-1, 0) != 0 || yielding(7, 0) != 1 {
		t.Error("how busy the pipeline is may be out of bounds")
	}
}
