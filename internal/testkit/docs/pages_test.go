package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// page is the text of a page of the documentation.
func page(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

// blocks returns the code blocks of a text in a language.
func blocks(t *testing.T, text, language string) []string {
	t.Helper()
	var found []string
	for _, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
	}
	require.NotEqualf(t, 0, len(found), "there is no block of %s", language)
	return found
}

// commands yields the commands of a console block, each with the lines that
// follow it.
func commands(block string) func(yield func(command string, output []string) bool) {
	return func(yield func(string, []string) bool) {
		for _, part := range strings.Split("\n"+block, "\n$ ")[1:] {
			lines := strings.Split(strings.TrimSuffix(part, "\n"), "\n")
			command := lines[0]
			for lines = lines[1:]; strings.HasSuffix(command, "\\"); lines = lines[1:] {
				command = strings.TrimSuffix(command, "\\") + strings.TrimSpace(lines[0])
			}
			if !yield(command, lines) {
				return
			}
		}
	}
}

// shown is what a line has to be that a page shows, where it may leave things out
// with "…".
func shown(line string) *regexp.Regexp {
	return regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(line), "…", ".*") + "$")
}

// wantLines looks for the lines that a page shows in what a command has answered,
// in order.
func wantLines(t *testing.T, command, out string, want []string) {
	t.Helper()
	missing := want
	for line := range strings.Lines(out) {
		if len(missing) > 0 && shown(missing[0]).MatchString(strings.TrimRight(line, "\r\n")) {
			missing = missing[1:]
		}
	}
	assert.Emptyf(t, missing, "%s\nanswers\n%s\nand should have the line", command, out)
}

// build compiles a program: a package of the module that the folder is in.
func build(t *testing.T, dir, pkg string) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), "program")
	c := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-w", "-o", program, pkg)
	c.Dir = dir
	out, err := c.CombinedOutput()
	require.NoErrorf(t, err, "%s does not compile \n%s", pkg, out)
	return program
}
