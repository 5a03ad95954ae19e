// Package await waits, for tests, for what a goroutine or the database brings about.
package await

import (
	"testing"
	"time"
)

// Patience is for what never happens; a slow machine is no failure.
const Patience = 2 * time.Minute

// Eventually waits until the condition is met, which it asks from the test's goroutine every few milliseconds. The test
// fails when its patience ends.
func Eventually(t testing.TB, what string, met func() bool) {
	t.Helper()
	deadline := time.Now().Add(Patience)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !met() {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
		<-tick.C
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
