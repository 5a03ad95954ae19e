package pawl

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/app/doctor"
)

func TestChecksOfTheDoctorAreDocumented(t *testing.T) {
	const path, begin, end = "docs/doctor.md", "<!-- checks -->\n", "<!-- end of checks -->\n"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no place for the checks", path)
	}
	var b strings.Builder
	b.WriteString("| check | looks at | warning | problem |\n|---|---|---|---|\n")
	for _, c := range doctor.Checks {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", c.Name, c.Looks, c.Warning, c.Problem)
	}
	want := before + begin + b.String() + end + after
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if string(text) != want {
		t.Errorf("%s does not show the checks; run go test . -run Documented -update", path)
	}
}
