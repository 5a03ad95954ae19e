package arch_test

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/testkit/docs"
)

// linked are the modules of others that a program links which imports some of our
// packages, on Linux.
func linked(t *testing.T, packages ...string) (modules []string) {
	t.Helper()
	args := append([]string{"list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}"}, packages...)
	list := exec.CommandContext(t.Context(), "go", args...)
	list.Dir, list.Env = root, append(os.Environ(), "GOOS=linux", "GOARCH=amd64")
	out, err := list.Output()
	require.NoError(t, err, list.Args)
	for m := range strings.Lines(string(out)) {
		if m = strings.TrimSpace(m); m != "" && m != module {
			modules = append(modules, m)
		}
	}
	slices.Sort(modules)
	return slices.Compact(modules)
}

// Programs are what others may import, and what they may not come to link by that.
var programs = []struct {
	name     string
	packages []string
	never    []string
}{
	{"`client`", []string{"./client"}, []string{cobra, embedded, jose, nats, natsServer, otel, otelSDK, otelTrace, pgx, prometheus,
		watermill}},
	{"`engine`, `workflow`", []string{"./engine", "./workflow"},
		[]string{cobra, embedded, nats, natsServer, otel, otelSDK, otelTrace, prometheus, watermill, websocket, kinOpenAPI}},
	{"`app/service`", []string{"./app/service"}, []string{cobra, nats, natsServer, otel, otelSDK, otelTrace, watermill, kinOpenAPI}},
	{"the root, `pawl`", []string{"."}, []string{chromedp, natsServer, otel, otelSDK, otelTrace, watermill, kinOpenAPI}},
	{"`tracing/opentelemetry`", []string{".", "./tracing/opentelemetry"}, []string{natsServer, otelSDK, watermill}},
}

func TestLinkedModulesAreUsed(t *testing.T) {
	for _, p := range programs {
		for _, m := range linked(t, p.packages...) {
			assert.Falsef(t, slices.Contains(p.never, m), "%s: %s is linked", p.name, m)
		}
	}
}

// The document shows what is linked, and so how much that grows with a change.
func TestLinkedModules_Golden(t *testing.T) {
	var b strings.Builder
	b.WriteString("| imported | linked, in addition to the rows above |\n|---|---|\n")
	var above []string
	for _, p := range programs {
		modules := linked(t, p.packages...)
		more := slices.DeleteFunc(slices.Clone(modules), func(m string) bool { return slices.Contains(above, m) })
		b.WriteString("| " + p.name + " | " + names(more) + " |\n")
		above = modules
	}
	docs.Part(t, root+"/docs/internals/dependencies.md", "linked", b.String())
}
