package pgtest

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/bouncer"
)

// envCrash has a process's test find a PgBouncer that has crashed: "once", or "always".
const envCrash = "PGTEST_TEST_CRASH"

// This is the test of a package whose PgBouncer crashes, in a process of its own.
func TestOfACrash(t *testing.T) {
	crash := os.Getenv(envCrash)
	if crash == "" {
		t.Skip("run by TestBouncerCrash_RunsTestsAgain")
	}
	BouncerURL(t)
	if crash == "always" || os.Getenv(envAgain) == "" {
		crashBouncer(t)
		t.Error("the connection is lost")
	}
}

// crashBouncer ends this process's PgBouncer as nobody expects it.
func crashBouncer(t *testing.T) {
	t.Helper()
	s, err := connect()
	require.NoError(t, err)
	out, err := exec.Command("pkill", "-KILL", "-P", strconv.Itoa(os.Getpid()), "-f", "bouncer.ini").CombinedOutput()
	require.NoError(t, err, out)
	await.Eventually(t, "it has ended", func() bool {
		_, crashed := s.bouncerCrashed()
		return crashed
	})
}

func TestBouncerCrash_RunsTestsAgain(t *testing.T) {
	t.Parallel()
	if !bouncer.Installed() {
		t.Skip(bouncer.ErrNotInstalled)
	}
	for crash, passes := range map[string]bool{"once": true, "always": false} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestOfACrash$")
		cmd.Env = append(os.Environ(), envCrash+"="+crash)
		out, err := cmd.CombinedOutput()
		assert.Equalf(t, passes, (err == nil), "%s: %v\n%s", crash, err, out)
		assert.Equalf(t, map[bool]int{true: 1, false: 2}[passes], strings.Count(string(out), "PgBouncer has crashed; it says:"),
			"%s: it is told times\n%s", crash, out)
		assert.Equalf(t, 1, strings.Count(string(out), "running the tests once more"), "%s: they run times more\n%s", crash, out)
	}
}
