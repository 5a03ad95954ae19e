package docs_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/testkit/pgtest"
)

// The commands of the page can be copied into a shell, and print what the page shows.
func TestAccessPageCommands(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	program := build(t, ".", "./cmd/pawl")
	text := page(t, "docs/access.md")
	sh := newShell(t, program)
	require.NoError(t, os.WriteFile(filepath.Join(sh.dir, "auth.json"), []byte(blocks(t, text, "json")[0]), 0o600))
	sh.walk(t, text)
}
