package docs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/testkit/docs"
)

var decisionTitle = regexp.MustCompile(`^# 0*(\d+)\.? (.*)\n`)

// The index lists the notes by their titles, "# 7. Title".
func TestDecisionIndex_Golden(t *testing.T) {
	const path, begin = "docs/decisions/README.md", "| | |\n|---|---|\n"
	notes, err := filepath.Glob("docs/decisions/0*.md")
	require.Truef(t, err == nil && len(notes) != 0, "%v %v", notes, err)
	var table strings.Builder
	for _, note := range notes {
		text, err := os.ReadFile(note)
		require.NoError(t, err)
		title := decisionTitle.FindStringSubmatch(string(text))
		require.NotNilf(t, title, "%s does not begin with a title like # 7. Why", note)
		fmt.Fprintf(&table, "| [%s](%s) | %s |\n", title[1], filepath.Base(note), title[2])
	}
	before, _, _ := strings.Cut(page(t, path), begin)
	docs.File(t, path, before+begin+table.String())
}
