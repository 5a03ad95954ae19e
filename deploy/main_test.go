package deploy

import (
	"fmt"
	"os"
	"testing"

	"github.com/pawlhq/pawl/internal/testkit/tables"
)

// The paths of all tests begin at the root of the repository.
func TestMain(m *testing.M) {
	if err := os.Chdir(".."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	tables.Main(m)
}
