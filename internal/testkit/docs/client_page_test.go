package docs_test

import (
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/app/service"
	"github.com/pawlhq/pawl/examples/order"
	"github.com/pawlhq/pawl/examples/order/provider"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/workflow"
)

// The program of the page about the client compiles as it stands there, and prints what the page shows.
func TestTheClientsPageHasAProgram(t *testing.T) {
	t.Parallel()
	text := page(t, "docs/client.md")
	s, err := service.Start(t.Context(), service.Config{Workflows: []workflow.Source{order.Workflow(provider.New())}, Database: pgtest.URL(t),
		Address: "127.0.0.1:0", Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	defer func() {
		assert.NoError(t, s.Stop(t.Context()))
	}()
	source := filepath.Join(t.TempDir(), "main.go")
	write(t, source, blocks(t, text, "go")[0])
	c := exec.CommandContext(t.Context(), build(t, ".", source))
	c.Env = append(os.Environ(), "PAWL_URL="+s.URL(), "PAWL_TOKEN=")
	out, err := c.CombinedOutput()
	want := blocks(t, text, "text")[0]
	assert.Truef(t, err == nil && string(out) == want, "%v, %s, want %s", err, out, want)
}
