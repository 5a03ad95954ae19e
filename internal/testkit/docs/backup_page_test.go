package docs_test

import (
	"testing"

	"github.com/pawlhq/pawl/internal/localpg"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
)

// The drill of the page about backups: a dump of a database that is in use, its restore, the checks, and the start after it.
func TestBackupDrill(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	programs, _, err := localpg.Find()
	if err != nil {
		t.Skip(err)
	}
	sh := newShell(t, build(t, ".", "./cmd/pawl"))
	sh.run(t, "export PATH="+programs+":$PATH DATABASE_URL='"+pgtest.Direct(t, pgtest.EmptyURL(t))+"' RESTORED='"+
		pgtest.Direct(t, pgtest.EmptyURL(t))+"'")
	sh.walk(t, page(t, "docs/backup.md"))
}
