package faults

import (
	"runtime"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/internal/testkit/await"
)

var waitUntil = await.Eventually

// waitParked waits until at least n goroutines are in the named function and
// cannot go on.
func waitParked(t testing.TB, function string, n int) {
	t.Helper()
	waitUntil(t, function+" is waited in", func() bool {
		found := 0
		for _, g := range goroutines() {
			if strings.Contains(g, function) && strings.Contains(g[:strings.IndexByte(g, '\n')], "[select") {
				found++
			}
		}
		return found >= n
	})
}

// goroutines are the stacks of all goroutines.
func goroutines() []string {
	buf := make([]byte, 1<<20)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) {
			return strings.Split(string(buf[:n]), "\n\n")
		}
		buf = make([]byte, 2*len(buf))
	}
}
