package metrics_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/testkit/docs"
	"github.com/pawlhq/pawl/metrics"
)

// Dashboards and rules of users contain the names of metrics and labels, so released names are
// permanent: -update only adds names. Remove one manually and announce it in the changelog.
func TestNames_Golden(t *testing.T) {
	const path = "testdata/names.txt"
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	promised := strings.Split(strings.TrimSpace(string(text)), "\n")
	var given []string
	for _, m := range metrics.Table() {
		given = append(given, fmt.Sprintf("%s %s{%s}", m.Type, m.Name, strings.Join(m.Labels, ",")))
	}
	for _, line := range promised {
		assert.Contains(t, given, line, "promised, and not there any more")
	}
	for _, line := range given {
		if slices.Contains(promised, line) {
			continue
		}
		assert.Truef(t, *docs.Update, "%s is new; run make generate", line)
		promised = append(promised, line)
	}
	if *docs.Update && !t.Failed() {
		slices.Sort(promised)
		require.NoError(t, os.WriteFile(path, []byte(strings.TrimSpace(strings.Join(promised, "\n"))+"\n"), 0o644))
	}
}
