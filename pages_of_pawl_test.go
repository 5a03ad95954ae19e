package pawl

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pawlhq/pawl/internal/testkit/pgtest"
)

// What the pages show of pawl, the binary with the example workflows, can be copied into a shell, and what they
// show is what comes.
func TestPagesAboutPawlAreAsTheySay(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	program := build(t, ".", "./cmd/pawl")
	t.Run("on a network", func(t *testing.T) {
		text := page(t, "docs/put-it-on-a-network.md")
		sh := newShell(t, program)
		if err := os.WriteFile(filepath.Join(sh.dir, "auth.json"), []byte(blocks(t, text, "json")[0]), 0o600); err != nil {
			t.Fatal(err)
		}
		sh.walk(t, text)
	})
	t.Run("tickets", func(t *testing.T) {
		sh := newShell(t, program)
		sh.serve(t, program+" serve")
		sh.walk(t, section(t, page(t, "docs/authentication.md"), "For a browser: tickets"))
	})
}
