package pawl

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/internal/await"
	"github.com/pawlhq/pawl/internal/pgtest"
)

// The page about putting a service on a network can be copied into a shell, line by line, and what it shows is what comes.
func TestPutItOnANetworkIsAsItSays(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("building a program takes seconds")
	}
	for _, program := range []string{"curl", "openssl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("there is no %s, which the page uses", program)
		}
	}
	page, err := os.ReadFile("docs/put-it-on-a-network.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-w", "-o", dir, "./cmd/pawl").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := os.WriteFile(filepath.Join(dir, "auth.json"), []byte(blocks(t, string(page), "json")[0]), 0o600); err != nil {
		t.Fatal(err)
	}
	sh := newShell(t, dir)
	address := "localhost:8443"
	for _, block := range blocks(t, string(page), "console") {
		for command, want := range commands(block) {
			if strings.Contains(command, "pawl serve") {
				address = sh.serve(t, command)
				continue
			}
			command = strings.ReplaceAll(strings.ReplaceAll(command, "localhost:8443", address), "wait=10", "wait=60")
			wantLines(t, command, sh.run(t, command), want)
		}
	}
}

// shell is a shell in a folder, to which commands are given one by one.
type shell struct {
	dir string
	in  io.Writer
	out *bufio.Reader
}

func newShell(t *testing.T, dir string) *shell {
	t.Helper()
	c := exec.Command("sh")
	c.Dir = dir
	c.Env = append(os.Environ(), "DATABASE_URL="+pgtest.EmptyURL(t), "PATH="+dir+":"+os.Getenv("PATH"))
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = io.WriteString(in, "kill $! && wait $!\n")
		_ = in.Close()
		_, _ = io.Copy(io.Discard, out)
		if err := c.Wait(); err != nil {
			t.Errorf("the service ended with %v", err)
		}
	})
	return &shell{dir, in, bufio.NewReader(out)}
}

// run is what a command prints. It has to succeed.
func (s *shell) run(t *testing.T, command string) string {
	t.Helper()
	const end = "=== it ended with "
	if _, err := fmt.Fprintf(s.in, "%s\nprintf '\\n%s%%d\\n' $?\n", command, end); err != nil {
		t.Fatal(err)
	}
	var printed strings.Builder
	for {
		line, err := s.out.ReadString('\n')
		if err != nil {
			t.Fatalf("%s: %v", command, err)
		}
		if code, is := strings.CutPrefix(line, end); is {
			if code != "0\n" {
				t.Fatalf("%s: exit %s%s", command, code, printed.String())
			}
			return printed.String()
		}
		printed.WriteString(line)
	}
}

// serve runs a command in the background, on a free port, and returns the address when it serves.
func (s *shell) serve(t *testing.T, command string) (address string) {
	t.Helper()
	s.run(t, strings.ReplaceAll(command, "0.0.0.0:8443", "127.0.0.1:0")+" 2>serve.log &")
	await.Eventually(t, "it serves", func() bool {
		log, _ := os.ReadFile(filepath.Join(s.dir, "serve.log")) // which the shell may not have made yet
		_, rest, serves := strings.Cut(string(log), "msg=serving url=https://127.0.0.1:")
		if serves && strings.Contains(rest, "\n") {
			address = "localhost:" + strings.Fields(rest)[0]
		}
		return address != ""
	})
	return address
}
