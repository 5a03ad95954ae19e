package service

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestConnectionsIn(t *testing.T) {
	for limit, want := range map[int64]int{math.MaxInt64: 10_000, 460 << 20: 1472, 64 << 30: 10_000, 1 << 20: 100} {
		assert.Equalf(t, want, connectionsIn(limit), "%d bytes connections", limit)
	}
}
