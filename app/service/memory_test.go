package service

import (
	"math"
	"testing"
)

func TestConnectionsIn(t *testing.T) {
	for limit, want := range map[int64]int{math.MaxInt64: 10_000, 460 << 20: 1472, 64 << 30: 10_000, 1 << 20: 100} {
		if got := connectionsIn(limit); got != want {
			t.Errorf("%d bytes: %d connections, want %d", limit, got, want)
		}
	}
}
