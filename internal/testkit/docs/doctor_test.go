package docs_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/app/doctor"
	"github.com/pawlhq/pawl/internal/testkit/docs"
)

func TestDoctorChecks_Golden(t *testing.T) {
	var b strings.Builder
	b.WriteString("| check | looks at | warning | problem |\n|---|---|---|---|\n")
	for _, c := range doctor.Checks {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", c.Name, c.Looks, c.Warning, c.Problem)
	}
	docs.Part(t, "docs/doctor.md", "checks", b.String())
}
