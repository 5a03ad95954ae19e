package service

import (
	"math"
	"runtime/debug"
)

// perConnection is about how many bytes an idle connection takes, with TLS.
const perConnection = 40 << 10

// connectionsIn is how many connections take an eighth of the process's memory limit (GOMEMLIMIT): at most 10,000, which is also the
// number without a limit.
func connectionsIn(limit int64) int {
	if limit == math.MaxInt64 {
		return 10_000
	}
	return int(min(max(limit/8/perConnection, 100), 10_000))
}

// memoryLimit is the process's.
func memoryLimit() int64 { return debug.SetMemoryLimit(-1) }
