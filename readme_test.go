package pawl

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/pawlhq/pawl/internal/await"
	"github.com/pawlhq/pawl/internal/pgtest"
)

// tour are the steps of the tour, in their order. It begins where the README ends.
func tour(t *testing.T) (paths []string) {
	t.Helper()
	paths, err := filepath.Glob("docs/tour/[0-9]*.md")
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	return paths
}

// The README is a front page: what else there is to show is in the tour.
func TestREADMEIsAFrontPage(t *testing.T) {
	if lines := strings.Count(page(t, "README.md"), "\n"); lines > 250 {
		t.Errorf("it has %d lines", lines)
	}
}

// The first workflow is a whole program, and the tour adds files to it. Both can be copied into a shell, line by line:
// what they draw and answer is what is shown.
func TestREADMEAndTourAreAsTheySay(t *testing.T) {
	t.Parallel()
	front := page(t, "README.md")
	sh := newShell(t, build(t, folder(t, map[string]string{"main.go": blocks(t, front, "go")[0]})))
	drawn, err := exec.CommandContext(t.Context(), sh.program, "diagram", "leave").Output()
	if err != nil || string(drawn) != blocks(t, front, "mermaid")[0] {
		t.Errorf("diagram: %v\n%s", err, drawn)
	}
	sh.walk(t, front)
	whole := build(t, folder(t, tourCode(t)))
	for _, step := range tour(t) {
		t.Run(filepath.Base(step), func(t *testing.T) {
			text := page(t, step)
			if changed.MatchString(text) {
				sh.program = whole
			}
			if strings.Contains(text, "```console") {
				sh.walk(t, text)
			}
			if strings.Contains(text, "```json") {
				subscribe(t, sh.address, text)
			}
		})
	}
}

var (
	mainIs    = regexp.MustCompile(`(?m)^func main\(\) .*$`)
	changed   = regexp.MustCompile("becomes `(func main\\(\\) [^`]*)`")
	asked     = regexp.MustCompile("`(\\{\"op\":[^`]*)`")
	wholeFile = regexp.MustCompile(`^package main\n`)
)

// tourCode is the program that the README and the tour make, in files as they are shown; what is a piece of a file
// is in one with the others.
func tourCode(t *testing.T) (files map[string]string) {
	t.Helper()
	text := page(t, "README.md")
	for _, step := range tour(t) {
		text += page(t, step)
	}
	last := changed.FindStringSubmatch(text)
	if last == nil {
		t.Fatal("no step says what main becomes")
	}
	files = map[string]string{"pieces.go": imports}
	for i, block := range blocks(t, text, "go") {
		switch {
		case !wholeFile.MatchString(block):
			files["pieces.go"] += block + "\n"
		case strings.Contains(block, "\nfunc Test"):
			files[fmt.Sprintf("shown%d_test.go", i)] = block
		default:
			files[fmt.Sprintf("shown%d.go", i)] = mainIs.ReplaceAllLiteralString(block, last[1])
		}
	}
	return files
}

// imports are those of the pieces.
const imports = `package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/schema"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

`

// What the tour shows of Go does what it says, and its tests pass.
func TestTheToursCodeRuns(t *testing.T) {
	t.Parallel()
	files := tourCode(t)
	files["driver_test.go"] = page(t, "testdata/tour/driver_test.go")
	c := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-ldflags=-w", "-v", "./"+folder(t, files))
	c.Env = append(os.Environ(), "DATABASE_URL="+pgtest.EmptyURL(t))
	out, err := c.CombinedOutput()
	for _, passed := range []string{"Example_fromGo", "Example_inTransactions", "Example_await", "TestUndecidedRequestIsRejected"} {
		if err != nil || !strings.Contains(string(out), "--- PASS: "+passed) {
			t.Fatalf("%s: %v\n%s", passed, err, out)
		}
	}
}

// subscribe sends what a text asks for over WebSocket, and looks for the frames that it shows.
func subscribe(t *testing.T, address, text string) {
	t.Helper()
	ask := asked.FindStringSubmatch(text)
	if ask == nil {
		t.Fatal("nothing is asked for")
	}
	conn, resp, err := websocket.DefaultDialer.DialContext(t.Context(), "ws://"+address+"/v1/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = conn.Close(), resp.Body.Close() }()
	if err := conn.WriteMessage(websocket.TextMessage, []byte(ask[1])); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(await.Patience)); err != nil {
		t.Fatal(err)
	}
	for want := range strings.Lines(blocks(t, text, "json")[0]) {
		_, frame, err := conn.ReadMessage()
		if err != nil {
			t.Fatal(err)
		}
		wantLines(t, ask[1], string(frame), []string{strings.TrimSpace(want)})
	}
}
