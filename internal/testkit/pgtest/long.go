package pgtest

import "testing"

// Long skips a test under -short, as make test runs: one that takes seconds of a processor. make test-long runs those that call
// it, or testing.Short, in their own body, and so does CI.
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("make test-long runs it")
	}
}
