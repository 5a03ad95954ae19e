package service

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/internal/pgtest"
)

// Types that a public generator makes from the document are enough for a client that orders and pays, checked by the
// compiler and run against a node.
func TestAClientInTypeScriptOrdersAndPays(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	for _, program := range []string{"npm", "node"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("there is no %s: install Node.js to try the document with a client in TypeScript", program)
		}
	}
	dir := t.TempDir()
	npm := func(args ...string) (string, error) {
		c := exec.CommandContext(t.Context(), args[0], args[1:]...)
		c.Dir, c.Env = dir, append(os.Environ(), "NO_UPDATE_NOTIFIER=1")
		out, err := c.CombinedOutput()
		return string(out), err
	}
	run := func(args ...string) string {
		t.Helper()
		out, err := npm(args...)
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return out
	}
	if out, err := npm("npm", "install", "--prefix", dir, "--no-save", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error",
		"--fetch-retries=0",
		"openapi-typescript@7.13.0", "typescript@5.9.3", "@types/node@22"); err != nil {
		t.Skipf("npm cannot fetch the generator and the compiler: %v\n%s", err, out)
	}
	s := service(t)
	status, document := request(t, http.MethodGet, s.URL()+"/openapi.json", "")
	if status != http.StatusOK {
		t.Fatalf("%d %s", status, document)
	}
	client, err := os.ReadFile("testdata/client.ts")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"openapi.json": document, "client.ts": string(client), "package.json": `{"type":"module"}`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	bin := filepath.Join(dir, "node_modules", ".bin")
	run(filepath.Join(bin, "openapi-typescript"), "openapi.json", "-o", "pawl.d.ts")
	run(filepath.Join(bin, "tsc"), "--strict", "--noUncheckedIndexedAccess", "--target", "es2022", "--module", "nodenext", "--skipLibCheck",
		"client.ts")
	if got := strings.TrimSpace(run("node", "client.js", s.URL(), "ann")); got != "order paid 3" {
		t.Errorf("the client says %q", got)
	}
}
