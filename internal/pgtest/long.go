package pgtest

import "testing"

// Long skips a test under -short, as make test runs: one that takes many seconds of a processor. make test-long runs the packages
// that have such tests, whole, and so does CI.
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("make test-long runs it")
	}
}
