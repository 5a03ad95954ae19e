package arch_test

import (
	"io/fs"
	"os"
	"strings"
	"testing"
)

// Every relative link of a page leads to a file that is there, and to a title in it where it names one.
func TestEveryLinkOfThePagesLeadsSomewhere(t *testing.T) {
	fsys := os.DirFS(root)
	var pages []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md"} {
		found, err := fs.Glob(fsys, pattern)
		if err != nil || len(found) == 0 {
			t.Fatal(pattern, err)
		}
		pages = append(pages, found...)
	}
	for _, page := range pages {
		text, err := fs.ReadFile(fsys, page)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range linkTo.FindAllStringSubmatch(fence.ReplaceAllString(string(text), ""), -1) {
			if !strings.Contains(l[1], "://") && !leads(fsys, page, l[1]) {
				t.Errorf("%s: the link %s leads nowhere", page, l[1])
			}
		}
	}
}
