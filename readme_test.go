package pawl

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/internal/pgtest"
)

// takesTime is the title of the section about version 2 of the leave.
const takesTime = "Work that takes time"

// readme returns the README in two parts: without the section about what takes
// time, and that section.
func readme(t *testing.T) (rest, section string) {
	t.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	before, after, ok := strings.Cut(string(text), "\n## "+takesTime+"\n")
	if !ok {
		t.Fatalf("the README has no section %q", takesTime)
	}
	section, after, _ = strings.Cut(after, "\n## ")
	return before + "\n## " + after, section
}

// blocks returns the code blocks of a text in a language.
func blocks(t *testing.T, text, language string) []string {
	t.Helper()
	var found []string
	for _, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
	}
	if len(found) == 0 {
		t.Fatalf("there is no block of %s", language)
	}
	return found
}

// folder writes files to a folder of this module, which the go command passes
// over otherwise because its name begins with "_".
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("building a program takes seconds")
	}
	dir, err := os.MkdirTemp(".", "_readme")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	for name, source := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// build compiles the program of a folder.
func build(t *testing.T, dir string) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), "leave")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-w", "-o", program, "./"+dir).CombinedOutput(); err != nil {
		t.Fatalf("the README does not compile: %v\n%s", err, out)
	}
	return program
}

// The first workflow is a whole program: what it draws and what it answers is
// what the README shows.
func TestREADMEIsAsItSays(t *testing.T) {
	t.Parallel()
	text, _ := readme(t)
	program := build(t, folder(t, map[string]string{"main.go": blocks(t, text, "go")[0]}))
	drawn, err := exec.CommandContext(t.Context(), program, "diagram", "leave").Output()
	if err != nil || string(drawn) != blocks(t, text, "mermaid")[0] {
		t.Errorf("diagram: %v\n%s", err, drawn)
	}
	converse(t, program, text)
}

// converse has the program answer what the text asks it with curl.
func converse(t *testing.T, program, text string) {
	t.Helper()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("there is no curl to ask it with")
	}
	address := serveREADME(t, program)
	for _, block := range blocks(t, text, "console") {
		for command, want := range commands(block) {
			if strings.HasPrefix(command, "curl ") {
				command = strings.ReplaceAll(command, "wait=10", "wait=60") // a machine may be slow
				ask(t, strings.ReplaceAll(command, "localhost:8080", address), want)
			}
		}
	}
}

// serveREADME runs the program until the test ends.
func serveREADME(t *testing.T, program string) (address string) {
	t.Helper()
	c := exec.Command(program, "serve", "--address", "127.0.0.1:0", "--database", pgtest.EmptyURL(t))
	stderr, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		// Not before Wait: it closes the pipe.
		if _, err := io.Copy(io.Discard, stderr); err != nil {
			t.Error(err)
		}
		if err := c.Wait(); err != nil {
			t.Errorf("serve ended with %v", err)
		}
	})
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		if _, rest, ok := strings.Cut(lines.Text(), "msg=serving url=http://"); ok {
			return strings.Fields(rest)[0]
		}
	}
	t.Fatal("the program did not serve")
	return ""
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

// ask runs a command and looks for the lines in its output. A line may leave
// things out with "…".
func ask(t *testing.T, command string, want []string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "sh", "-c", command).Output()
	if err != nil {
		t.Errorf("%s: %v", command, err)
		return
	}
	wantLines(t, command, string(out), want)
}

// wantLines looks for the lines in what a command has answered, in order.
func wantLines(t *testing.T, command, out string, want []string) {
	t.Helper()
	rest := strings.ReplaceAll(out, "\r", "")
	for _, line := range want {
		pattern := strings.ReplaceAll(regexp.QuoteMeta(line), "…", ".*")
		at := regexp.MustCompile("(?m)^" + pattern + "$").FindStringIndex(rest)
		if at == nil {
			t.Errorf("%s\nanswers\n%s\nand should have the line\n%s", command, out, line)
			return
		}
		rest = rest[at[1]:]
	}
}
