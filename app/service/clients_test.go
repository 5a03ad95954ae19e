package service

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/examples/fines"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/workflow"
)

// Clients that public generators make from the document of the shipped examples compile, order and pay; a linter finds no error in it.
func TestGeneratedClients(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	s := service(t, func(c *Config) { c.Workflows = append(c.Workflows, workflow.Source(fines.Workflow)) })
	status, document := asks(t, s, "/openapi.json", "")
	require.Equal(t, http.StatusOK, status, document)
	t.Run("npm", func(t *testing.T) {
		t.Parallel()
		d := newFolder(t, document, "npm", "node")
		d.obtain("npm", "install", "--prefix", d.path, "--no-save", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error",
			"--fetch-retries=0", "--prefer-offline", "openapi-typescript@7.13.0", "@hey-api/openapi-ts@0.95.0", "typescript@5.9.3",
			"@types/node@22", "@redocly/cli@2.77.0")
		d.copy("types.ts", "sdk.ts")
		d.write("package.json", `{"type":"module"}`)
		d.write("tsconfig.json", `{"files":["types.ts","sdk.ts"],"compilerOptions":{"strict":true,"noUncheckedIndexedAccess":true,`+
			`"target":"es2022","module":"nodenext","skipLibCheck":true}}`)
		d.run("redocly", "lint", "openapi.json", "--extends=recommended", "--format=stylish",
			// These are warnings of the recommended rules, for addresses that answer every caller, a WebSocket, and codes in SQL.
			"--skip-rule=operation-4xx-response", "--skip-rule=operation-2xx-response", "--skip-rule=no-unused-components",
			"--max-problems=20")
		d.run("openapi-typescript", "openapi.json", "-o", "pawl.d.ts")
		d.run("openapi-ts", "-i", "openapi.json", "-o", "sdk")
		d.run("tsc")
		d.says("order paid 3", "node", "types.js", s.URL(), "ann")
		d.says("order paid 409", "node", "sdk.js", s.URL(), "bob")
	})
	t.Run("go", func(t *testing.T) {
		t.Parallel()
		d := newFolder(t, document, "go")
		d.environment = append(d.environment, "GOFLAGS=-mod=mod", "GOWORK=off", "GOBIN="+filepath.Join(d.path, "node_modules", ".bin"))
		d.write("go.mod", "module client\n\ngo 1.26.0\n\nrequire github.com/oapi-codegen/runtime v1.9.0\n")
		d.obtain("go", "install", "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2")
		d.copy("main.go")
		d.write("pawl/pawl.go", "")
		d.run("oapi-codegen", "-generate=types,client", "-package=pawl", "-o=pawl/pawl.go", "openapi.json")
		d.obtain("go", "mod", "tidy")
		d.run("go", "build", "-o", "client", ".")
		d.says("order paid 409", filepath.Join(d.path, "client"), s.URL(), "eve")
	})
}

// folder is where a client is generated, compiled and run.
type folder struct {
	t           *testing.T
	path        string
	environment []string
}

// newFolder makes a folder with the document. The test is skipped if a program is missing.
func newFolder(t *testing.T, document string, programs ...string) *folder {
	t.Helper()
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is missing: install it to generate clients from the document", program)
		}
	}
	d := &folder{t: t, path: t.TempDir(), environment: append(os.Environ(), "NO_UPDATE_NOTIFIER=1", "REDOCLY_TELEMETRY=off")}
	d.write("openapi.json", document)
	return d
}

func (d *folder) write(name, text string) {
	d.t.Helper()
	path := filepath.Join(d.path, name)
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o600)
	}
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d *folder) copy(names ...string) {
	d.t.Helper()
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join("testdata", "clients", name))
		if err != nil {
			d.t.Fatal(err)
		}
		d.write(name, string(text))
	}
}

// call runs a program, one of the folder's own if it is there.
func (d *folder) call(args []string) (string, error) {
	if own := filepath.Join(d.path, "node_modules", ".bin", args[0]); exists(own) {
		args = append([]string{own}, args[1:]...)
	}
	c := exec.CommandContext(d.t.Context(), args[0], args[1:]...)
	c.Dir, c.Env = d.path, d.environment
	out, err := c.CombinedOutput()
	return string(out), err
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// obtain runs what takes modules from a registry, and skips the test if that is out of reach.
func (d *folder) obtain(args ...string) {
	d.t.Helper()
	out, err := d.call(args)
	if err == nil {
		return
	}
	if slices.ContainsFunc([]string{"ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ENETUNREACH", "ETIMEDOUT", "ENOTCACHED", "dial tcp",
		"no such host", "module lookup disabled"}, func(sign string) bool { return strings.Contains(out, sign) }) {
		d.t.Skipf("the registry is out of reach: %v: %v\n%s", args, err, out)
	}
	d.t.Fatalf("%v: %v\n%s", args, err, out)
}

func (d *folder) run(args ...string) string {
	d.t.Helper()
	out, err := d.call(args)
	if err != nil {
		d.t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return out
}

func (d *folder) says(want string, args ...string) {
	d.t.Helper()
	if got := strings.TrimSpace(d.run(args...)); got != want {
		d.t.Errorf("%s says %q, want %q", args[0], got, want)
	}
}
