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
	"time"

	"github.com/pawlhq/pawl/internal/pgtest"
)

// blocks returns the code blocks of the README in a language.
func blocks(t *testing.T, language string) []string {
	t.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		found = append(found, m[1])
	}
	if len(found) == 0 {
		t.Fatalf("the README has no block of %s", language)
	}
	return found
}

// build compiles a program from files in a folder of this module, which the go
// command passes over otherwise because its name begins with "_".
func build(t *testing.T, files map[string]string) (program string) {
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
	program = filepath.Join(t.TempDir(), "leave")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./"+dir).CombinedOutput(); err != nil {
		t.Fatalf("the README does not compile: %v\n%s", err, out)
	}
	return program
}

// The first workflow is a whole program: what it draws and what it answers is
// what the README shows.
func TestREADMEIsAsItSays(t *testing.T) {
	program := build(t, map[string]string{"main.go": blocks(t, "go")[0]})
	drawn, err := exec.CommandContext(t.Context(), program, "diagram", "leave").Output()
	if err != nil || string(drawn) != blocks(t, "mermaid")[0] {
		t.Errorf("diagram: %v\n%s", err, drawn)
	}
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("there is no curl to ask it with")
	}
	address := serveREADME(t, program)
	for _, block := range blocks(t, "console") {
		for command, want := range commands(block) {
			if strings.HasPrefix(command, "curl ") {
				ask(t, strings.ReplaceAll(command, "localhost:8080", address), want)
			}
		}
	}
}

// serveREADME runs the program until the test ends.
func serveREADME(t *testing.T, program string) (address string) {
	t.Helper()
	c := exec.Command(program, "serve", "--address", "127.0.0.1:0", "--database", pgtest.URL(t))
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

// ask runs a command and looks for the lines in its output, in order. A line may
// leave things out with "…".
func ask(t *testing.T, command string, want []string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "sh", "-c", command).Output()
	if err != nil {
		t.Errorf("%s: %v", command, err)
		return
	}
	rest := strings.ReplaceAll(string(out), "\r", "")
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

// driver runs what the README shows of embedding.
const driver = `package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func main() {
	if err := drive(context.Background()); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func drive(ctx context.Context) error {
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := run(ctx, pool); err != nil {
		return err
	}
	if err := run(ctx, pool); err != nil {
		return err
	}
	if _, err := pool.Exec(ctx, "CREATE TABLE employee AS SELECT 'Ann' AS name, 30 AS days_left"); err != nil {
		return err
	}
	withSQL := workflow.Define("leave", 2, workflow.Start("request", Requested, request), approve).Final(Approved).Roles("manager")
	eng, err := engine.New(engine.Config{Pool: pool, Workflows: []workflow.Source{withSQL}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	if err := eng.Start(ctx); err != nil {
		return err
	}
	defer eng.Stop(ctx)
	c := transitions.Command{Workflow: "leave", Transition: "request", Key: "form-18", Payload: []byte(` + "`" + `{"number":"L-18","employee":"Ann","days":5}` + "`" + `)}
	for range 2 { // the second is a retry, and must not take the days again
		if err := requestWithDays(ctx, pool, eng, c); err != nil {
			return err
		}
	}
	receipt, err := eng.Submit(ctx, c)
	if err != nil {
		return err
	}
	receipt, err = eng.Submit(ctx, transitions.Command{Transition: "approve", Instance: receipt.Instance, Key: "verdict-18", Roles: []string{"manager"}})
	if err != nil {
		return err
	}
	if err := receipt.Err(); err != nil {
		return err
	}
	var left int
	if err := pool.QueryRow(ctx, "SELECT days_left FROM employee").Scan(&left); err != nil {
		return err
	}
	fmt.Println("days left:", left)
	return nil
}
`

const snippetImports = `package main

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

// What the README shows of embedding does what it says.
func TestREADMECodeRuns(t *testing.T) {
	code := blocks(t, "go")
	whole := strings.Replace(code[0], "func main() { pawl.Main(Workflow) }", "", 1)
	whole = strings.Replace(whole, "\t\"github.com/pawlhq/pawl\"\n", "", 1)
	program := build(t, map[string]string{
		"main.go": whole, "snippets.go": snippetImports + strings.Join(code[1:], "\n"), "driver.go": driver,
	})
	c := exec.CommandContext(t.Context(), program)
	c.Env = append(os.Environ(), "DATABASE_URL="+pgtest.URL(t))
	c.WaitDelay = time.Second
	out, err := c.CombinedOutput()
	if want := "requested 1 false\nrequested 1 true\ndays left: 22\n"; err != nil || string(out) != want {
		t.Errorf("%v\n got %s\nwant %s", err, out, want)
	}
}
