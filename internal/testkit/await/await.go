// Package await waits, for tests, for what a goroutine or the database brings about.
package await

import (
	"testing"
	"time"
)

// Patience is the timeout for events that must happen. It is long because a slow machine is not a failure.
const Patience = 4 * time.Minute

// Eventually waits until the condition is met, which it asks from the test's goroutine: at first every few milliseconds, and
// the longer it waits the more seldom, so that waiting takes little from what it waits for. The test fails when its patience
// ends.
func Eventually(t testing.TB, what string, met func() bool) {
	t.Helper()
	for begun := time.Now(); !met(); {
		waited := time.Since(begun)
		if waited > Patience {
			t.Fatalf("not in time: %s", what)
		}
		time.Sleep(min(max(waited/8, 2*time.Millisecond), 25*time.Millisecond))
	}
}

// Pass lets time go by, and says what for. It is for tests of what happens while nothing happens, and for work that takes
// time by itself; it never stands for the wait for something, which is Eventually's and Receive's.
func Pass(what string, d time.Duration) {
	if what == "" {
		panic("await: time goes by for nothing")
	}
	time.Sleep(d)
}

// Receive returns the next value of a channel. The test fails when its patience ends.
func Receive[T any](t testing.TB, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(Patience):
		t.Fatalf("not in time: %s", what)
		panic("unreachable")
	}
}
