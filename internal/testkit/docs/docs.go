// Package docs compares the generated parts of the documentation with their sources. With the flag -update its functions
// write these parts; make generate does so for all of them. Its tests check the pages: the names on them exist, their
// programs compile, and their commands print what the pages show.
package docs

import (
	"flag"
	"os"
	"strings"
	"testing"
)

// Update is the flag -update of tests.
var Update = flag.Bool("update", false, "write the generated files instead of comparing them")

// File requires that a file has the given text.
func File(t testing.TB, path, want string) {
	t.Helper()
	if got, err := os.ReadFile(path); err == nil && string(got) == want {
		return
	}
	if !*Update {
		t.Errorf("%s differs from its source; if the change is intended, run make generate", path)
	} else if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Part requires that a page has the given text between the lines <!-- name --> and <!-- end of name -->.
func Part(t testing.TB, path, name, want string) {
	t.Helper()
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->\n"
	before, rest, found := strings.Cut(string(page), begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no part %q", path, name)
	}
	File(t, path, before+begin+want+end+after)
}
