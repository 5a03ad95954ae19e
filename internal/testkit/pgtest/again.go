package pgtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// envAgain is set in the process that runs the tests again.
const envAgain = "PGTEST_AGAIN"

// again runs the tests of this process once more, after a failure during which PgBouncer has crashed, and returns the exit
// status. Before 1.21 it ends itself now and then when a client cancels a statement at the wrong moment
// (https://github.com/pgbouncer/pgbouncer/issues/822), as pgx does whenever a context ends: that says nothing of what is
// tested. A second crash is a failure.
func again(said string) int {
	fmt.Fprintf(os.Stderr, "pgtest: PgBouncer has crashed; it says:\n%s\n", said)
	if os.Getenv(envAgain) != "" {
		return 1
	}
	fmt.Fprintln(os.Stderr, "pgtest: running the tests once more")
	cmd := exec.Command(os.Args[0], os.Args[1:]...)
	cmd.Env = append(os.Environ(), envAgain+"=1")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	err := cmd.Run()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		return max(exit.ExitCode(), 1) // also when a signal has ended it
	} else if err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		return 1
	}
	return 0
}
