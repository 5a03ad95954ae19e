package arch_test

import (
	"os"
	"strings"
	"testing"
)

// Each claim of the threat model names a test that is there.
func TestTheThreatModelNamesItsTests(t *testing.T) {
	const page = "docs/threat-model.md"
	fsys := os.DirFS(root)
	names, err := declarations(fsys)
	if err != nil {
		t.Fatal(err)
	}
	missing, err := strangers(fsys, page, names)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range missing {
		t.Error(m)
	}
	text, err := os.ReadFile(root + "/" + page)
	if err != nil {
		t.Fatal(err)
	}
	claims := 0
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| | ") {
			continue
		}
		claims++
		cells := strings.Split(strings.TrimSpace(line), " | ")
		shown := quoted.FindAllStringSubmatch(cells[len(cells)-1], -1)
		if len(cells) != 2 || len(shown) == 0 {
			t.Errorf("this names no test: %s", line)
		}
		for _, name := range shown {
			if !aTest.MatchString(name[1]) {
				t.Errorf("%s is no name of a test: %s", name[1], line)
			}
		}
	}
	if claims < 30 {
		t.Errorf("there are %d claims", claims)
	}
}
