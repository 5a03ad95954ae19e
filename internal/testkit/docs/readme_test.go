package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
)

// tour are the steps of the tour, in their order. It begins where the README ends.
func tour(t *testing.T) (paths []string) {
	t.Helper()
	paths, err := filepath.Glob("docs/tour/[0-9]*.md")
	require.Truef(t, err == nil && len(paths) != 0, "%v %v", paths, err)
	return paths
}

// The README is a front page: what else there is to show is in the tour.
func TestREADMEIsAFrontPage(t *testing.T) {
	lines := strings.Count(page(t, "README.md"), "\n")
	assert.Truef(t, lines <= 250, "it has %d lines", lines)
}

// The README and the tour can be followed literally in a new folder: programs are saved unchanged, commands run line by line, and their
// output matches.
func TestREADMEAndTourAreAsTheySay(t *testing.T) {
	t.Parallel()
	front := page(t, "README.md")
	sh := newShell(t, "")
	save(t, sh.dir, front)
	sh.walk(t, front)
	drawn, err := exec.CommandContext(t.Context(), sh.program, "diagram", "leave").Output()
	assert.Truef(t, err == nil && string(drawn) == blocks(t, front, "mermaid")[0], "diagram: %v\n%s", err, drawn)
	for _, step := range tour(t) {
		t.Run(filepath.Base(step), func(t *testing.T) {
			pgtest.Long(t)
			text := page(t, step)
			if save(t, sh.dir, text) {
				sh.program = ""
			}
			if strings.Contains(text, "```console") {
				sh.walk(t, text)
			}
			if strings.Contains(text, "```json") {
				subscribe(t, sh.address, text)
			}
			if strings.Contains(text, "$ go test .") {
				goTest(t, sh.dir)
			}
		})
	}
}

var (
	saved   = regexp.MustCompile("(?s)Save (?:it|this)\\s+as\\s+`([\\w/]+\\.go)`.*?```go\n(.*?)```")
	changed = regexp.MustCompile("The last line of `main.go` becomes `(func main\\(\\) [^`]*)`")
	mainIs  = regexp.MustCompile(`(?m)^func main\(\) .*$`)
	asked   = regexp.MustCompile("`(\\{\"op\":[^`]*)`")
)

// save writes the programs of a page into a reader's folder, under the names that the page gives them, and reports whether there
// were any. A page has no Go that is not to be saved: a piece of a program is nothing that a reader could run.
func save(t *testing.T, dir, text string) (some bool) {
	t.Helper()
	files := saved.FindAllStringSubmatch(text, -1)
	assert.Len(t, files, strings.Count(text, "```go\n"), "programs are to be saved")
	for _, f := range files {
		write(t, filepath.Join(dir, f[1]), f[2])
	}
	if becomes := changed.FindStringSubmatch(text); becomes != nil {
		path := filepath.Join(dir, "main.go")
		write(t, path, mainIs.ReplaceAllLiteralString(page(t, path), becomes[1]))
	}
	return len(files) > 0
}

func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

// goTest runs the tests that a reader has saved. They have the database of these tests, which is not that of the shell: there they
// make databases of their own.
func goTest(t *testing.T, dir string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-ldflags=-w", "-v", ".")
	c.Dir = dir
	out, err := c.CombinedOutput()
	if err != nil || strings.Count(string(out), "--- PASS: ") != strings.Count(page(t, filepath.Join(dir, "leave_test.go")), "\nfunc Test")-1 {
		t.Errorf("%v\n%s", err, out)
	}
}

// subscribe sends what a text asks for over WebSocket, and looks for the frames that it shows.
func subscribe(t *testing.T, address, text string) {
	t.Helper()
	ask := asked.FindStringSubmatch(text)
	require.NotNil(t, ask, "nothing is asked for")
	conn, resp, err := websocket.DefaultDialer.DialContext(t.Context(), "ws://"+address+"/v1/stream", nil)
	require.NoError(t, err)
	defer func() { _, _ = conn.Close(), resp.Body.Close() }()
	require.NoError(t, conn.WriteMessage(websocket.TextMessage, []byte(ask[1])))
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(await.Patience)))
	for want := range strings.Lines(blocks(t, text, "json")[0]) {
		_, frame, err := conn.ReadMessage()
		require.NoError(t, err)
		wantLines(t, ask[1], string(frame), []string{strings.TrimSpace(want)})
	}
}
