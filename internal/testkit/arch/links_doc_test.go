package arch_test

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every relative link of a page leads to a file that is there, and to a title in it where it names one.
func TestEveryLinkOfThePagesLeadsSomewhere(t *testing.T) {
	fsys := os.DirFS(root)
	var pages []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md"} {
		found, err := fs.Glob(fsys, pattern)
		require.Truef(t, err == nil && len(found) != 0, "%v %v", pattern, err)
		pages = append(pages, found...)
	}
	for _, page := range pages {
		text, err := fs.ReadFile(fsys, page)
		require.NoError(t, err)
		for _, l := range linkTo.FindAllStringSubmatch(fence.ReplaceAllString(string(text), ""), -1) {
			assert.Falsef(t, !strings.Contains(l[1], "://") && !leads(fsys, page, l[1]), "%s: the link %s leads nowhere", page, l[1])
		}
	}
}

var (
	ourPage    = regexp.MustCompile(`https://github\.com/pawlhq/pawl/(?:blob|tree)/main/([\w./-]*\w)(#\w[\w-]*)?`)
	namesPages = []string{".md", ".go", ".sql", ".yml", ".yaml", ".json", ".service", ".html", ".js"}
)

// So do the addresses by which errors, alerts, tables and files in deploy/ name pages of this repository.
func TestAddressesOfOurPagesLeadSomewhere(t *testing.T) {
	fsys, found := os.DirFS(root), 0
	err := fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (name == "dist" || name == "bin" || name == ".git"):
			return fs.SkipDir
		case entry.IsDir() || !slices.Contains(namesPages, path.Ext(name)):
			return nil
		}
		text, err := fs.ReadFile(fsys, name)
		for _, l := range ourPage.FindAllStringSubmatch(string(text), -1) {
			if found++; !leads(fsys, "README.md", l[1]+l[2]) {
				t.Errorf("%s: %s leads nowhere", name, l[0])
			}
		}
		return err
	})
	assert.Truef(t, err == nil && found >= 20, "there are %d such addresses, %v", found, err)
}

// The index lists all pages by the reader's task. (Decisions and the pages for contributors have indexes of their own.)
func TestEveryPageIsInTheIndex(t *testing.T) {
	fsys := os.DirFS(root)
	index, err := fs.ReadFile(fsys, "docs/README.md")
	require.NoError(t, err)
	for _, pattern := range []string{"docs/*.md", "docs/tour/*.md"} {
		pages, err := fs.Glob(fsys, pattern)
		require.Truef(t, err == nil && len(pages) != 0, "%v %v", pattern, err)
		for _, page := range pages {
			assert.Falsef(t, page != "docs/README.md" && !strings.Contains(string(index), "]("+strings.TrimPrefix(page, "docs/")+")"),
				"docs/README.md does not link %s", page)
		}
	}
}

// Go names and tests that the front pages mention exist. (Files that a reader saves are excluded.)
func TestPagesForReadersNameWhatIsThere(t *testing.T) {
	fsys := os.DirFS(root)
	names, err := declarations(fsys)
	require.NoError(t, err)
	pages, err := fs.Glob(fsys, "docs/tour/*.md")
	require.Truef(t, err == nil && len(pages) != 0, "%v %v", pages, err)
	pages = append(pages, "README.md", "docs/architecture.md", "docs/comparison.md", "docs/network.md", "docs/sql.md", "docs/threat-model.md")
	for _, page := range pages {
		missing, err := strangers(fsys, page, names)
		require.NoError(t, err)
		for _, m := range missing {
			assert.Contains(t, m, ": there is no file ")
		}
	}
}
