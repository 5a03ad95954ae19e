package docs_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
)

// shell is a shell in a folder of its own, outside of this repository, with a database of its own, to which
// the commands of a page are given one by one, as a reader would.
type shell struct {
	t       *testing.T // whose folder it is: the programs of all of its pages are in there
	dir     string
	program string // what "pawl" and "go run ." stand for; "" is not compiled yet
	address string // of the program that serves, once one does
	in      io.Writer
	out     *bufio.Reader
}

func newShell(t *testing.T, program string) *shell {
	t.Helper()
	for _, needed := range []string{"curl", "openssl"} {
		if _, err := exec.LookPath(needed); err != nil {
			t.Skipf("there is no %s, which the pages use", needed)
		}
	}
	s := &shell{t: t, dir: t.TempDir(), program: program}
	c := exec.Command("sh")
	c.Dir = s.dir
	c.Env = append(os.Environ(), "DATABASE_URL="+pgtest.EmptyURL(t), "GOFLAGS=-ldflags=-w")
	in, err := c.StdinPipe()
	require.NoError(t, err)
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	s.in, s.out = in, bufio.NewReader(out)
	t.Cleanup(func() {
		if s.address != "" {
			_, _ = io.WriteString(in, endService+"\n")
		}
		_ = in.Close()
		_, _ = io.Copy(io.Discard, out)
		assert.NoError(t, c.Wait(), "the service ended with")
	})
	return s
}

// endService ends the service, and fails when that does.
const endService = "kill $! && wait $!"

var (
	elsewhere   = regexp.MustCompile(`^(git clone|make|go test|go run \./cmd/pawl)\b`) // what is done in the repository, or by the test itself
	asProgram   = regexp.MustCompile(`(^|\$\(| )(?:pawl|go run \.) `)
	replacement = regexp.MustCompile(`=\.\./pawl$`)
	onThisHost  = regexp.MustCompile(`localhost:8(?:080|443)\b`)
	toEverybody = regexp.MustCompile(` --address \S+`)
	serving     = regexp.MustCompile(`msg=serving url=http(s?)://127\.0\.0\.1(:\d+)\s`)
)

// walk runs the commands of a page, and looks for what each is said to print.
func (s *shell) walk(t *testing.T, text string) {
	t.Helper()
	for _, block := range blocks(t, text, "console") {
		for command, want := range commands(block) {
			if elsewhere.MatchString(command) {
				continue
			}
			if asProgram.MatchString(command) && s.program == "" {
				s.program = build(s.t, s.dir, ".")
			}
			command = asProgram.ReplaceAllString(command, "${1}"+s.program+" ")
			command = replacement.ReplaceAllString(command, "="+repository(t))
			if strings.Contains(command, s.program+" serve") {
				s.serve(t, command)
				continue
			}
			command = onThisHost.ReplaceAllString(strings.ReplaceAll(command, "wait=10", "wait=60"), s.address) // a machine may be slow
			if strings.HasPrefix(command, "curl -sN ") {
				s.follow(t, command, want)
				continue
			}
			wantLines(t, command, s.run(t, command), want)
		}
	}
}

// repository is the folder that a reader has cloned.
func repository(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	require.NoError(t, err)
	return dir
}

// run is what a command prints. It has to succeed.
func (s *shell) run(t *testing.T, command string) string {
	t.Helper()
	const end = "=== it ended with "
	_, err := fmt.Fprintf(s.in, "%s\nprintf '\\n%s%%d\\n' $?\n", command, end)
	require.NoError(t, err)
	var printed strings.Builder
	for {
		line, err := s.out.ReadString('\n')
		require.NoError(t, err, command)
		if code, is := strings.CutPrefix(line, end); is {
			require.Equalf(t, "0\n", code, "%s: exit %s", command, printed.String())
			return printed.String()
		}
		printed.WriteString(line)
	}
}

// follow reads the stream that a command prints until it has had what the page shows: it may have no end.
func (s *shell) follow(t *testing.T, command string, want []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), await.Patience)
	defer cancel()
	c := exec.CommandContext(ctx, "sh", "-c", "exec "+command)
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	for lines := bufio.NewScanner(out); len(want) > 0 && lines.Scan(); {
		if shown(want[0]).MatchString(lines.Text()) {
			want = want[1:]
		}
	}
	cancel()
	_ = c.Wait() // it was killed
	assert.Emptyf(t, want, "%s\nends without the line", command)
}

// serve runs a service in the background on a free port, instead of a running one, until it serves.
func (s *shell) serve(t *testing.T, command string) {
	t.Helper()
	if s.address != "" {
		s.run(t, endService)
		s.address = ""
	}
	log, err := os.CreateTemp(s.dir, "log")
	require.NoError(t, err)
	defer func() { _ = log.Close() }()
	s.run(t, toEverybody.ReplaceAllString(command, "")+" --address 127.0.0.1:0 2>"+log.Name()+" &")
	await.Eventually(t, "it serves", func() bool {
		text, err := os.ReadFile(log.Name())
		require.NoError(t, err)
		url := serving.FindSubmatch(text)
		if url == nil {
			return false
		}
		s.address = "127.0.0.1" + string(url[2])
		if len(url[1]) > 0 {
			s.address = "localhost" + string(url[2]) // whom the certificate is for
		}
		return true
	})
}
