// Package chromium runs a headless Chromium for tests of pages, and drives it by its DevTools protocol: what a
// person does with mouse and keyboard, and what the page does, loads and complains of.
//
// https://chromedevtools.github.io/devtools-protocol/
package chromium

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Env names the environment variable with the program, where it is none of the usual names.
const Env = "PAWL_CHROMIUM"

// find is the program, "" where there is none.
func find() string {
	if named := os.Getenv(Env); named != "" {
		return named
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// startLimit bounds the start of the browser, which reads a few hundred megabytes the first time.
const startLimit = 2 * time.Minute

// Start runs a Chromium with a profile of its own until the test ends. Where there is none, the test is skipped.
func Start(t testing.TB) *Browser {
	t.Helper()
	program := find()
	if program == "" {
		t.Skipf("no Chromium found: install it (package chromium), or name it in %s, to test pages in it", Env)
	}
	home := t.TempDir()
	c := exec.Command(program, "--headless", "--remote-debugging-port=0", "--user-data-dir="+home+"/profile",
		"--no-sandbox", "--disable-dev-shm-usage", // in a container, as root
		"--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--disable-extensions", "--disable-default-apps", "--mute-audio", "--lang=en",
		"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", // whatever it wants from elsewhere
		"about:blank")
	c.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_CACHE_HOME="+home, "LANGUAGE=en")
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stderr, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	said := make(chan string, 1)
	read := make(chan struct{})
	go func() {
		defer close(read)
		said <- address(stderr)
		_, _ = io.Copy(io.Discard, stderr)
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) // it may be gone already, and its helpers go with it
		<-read
		_ = c.Wait() // says that it was killed
	})
	select {
	case url := <-said:
		if !strings.HasPrefix(url, "ws://") {
			t.Fatalf("%s does not start; it says:\n%s", program, url)
		}
		return connect(t, url)
	case <-time.After(startLimit):
		t.Fatalf("%s did not start within %v", program, startLimit)
		return nil
	}
}

// address reads where DevTools listens, or all that was said instead.
func address(stderr io.Reader) string {
	var all strings.Builder
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		if url, is := strings.CutPrefix(lines.Text(), "DevTools listening on "); is {
			return url
		}
		all.WriteString(lines.Text() + "\n")
	}
	return all.String()
}
