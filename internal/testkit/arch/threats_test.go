package arch_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each claim of the threat model names a test that is there.
func TestTheThreatModelNamesItsTests(t *testing.T) {
	const page = "docs/threat-model.md"
	fsys := os.DirFS(root)
	names, err := declarations(fsys)
	require.NoError(t, err)
	missing, err := strangers(fsys, page, names)
	require.NoError(t, err)
	for _, m := range missing {
		t.Error(m)
	}
	text, err := os.ReadFile(root + "/" + page)
	require.NoError(t, err)
	claims := 0
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "| ") || strings.HasSuffix(strings.TrimSpace(line), " | tests |") {
			continue
		}
		claims++
		cells := strings.Split(strings.TrimSpace(line), " | ")
		shown := quoted.FindAllStringSubmatch(cells[len(cells)-1], -1)
		assert.Truef(t, len(cells) == 2 && len(shown) != 0, "this names no test: %s", line)
		for _, name := range shown {
			assert.Truef(t, aTest.MatchString(name[1]), "%s is no name of a test: %s", name[1], line)
		}
	}
	assert.Truef(t, claims >= 30, "there are %d claims", claims)
}
