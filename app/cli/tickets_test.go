package cli

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/schema"
)

func TestTicketKeysAreRotatedAndDropped(t *testing.T) {
	pool := pgtest.Pool(t)
	_, err := schema.Migrate(t.Context(), pool, schema.Default)
	require.NoError(t, err)
	for i, c := range []struct {
		args []string
		out  string
		keys int
	}{
		{nil, "tickets are signed with a new key\n", 1},
		{nil, "tickets are signed with a new key\n", 2},
		{[]string{"--drop"}, "tickets are signed with a new key, and all others are removed\n", 1},
	} {
		var out bytes.Buffer
		root := CommandLine()
		root.SetOut(&out)
		root.SetErr(io.Discard)
		root.SetArgs(append([]string{"tickets", "rotate", "--database", pool.Config().ConnString()}, c.args...))
		root.SilenceErrors, root.SilenceUsage = true, true
		var n int
		err := root.ExecuteContext(t.Context())
		assert.Truef(t, err == nil && out.String() == c.out, "%d: %q, %v", i, out.String(), err)
		err = pool.QueryRow(t.Context(), "SELECT count(*) FROM pawl.ticket_key").Scan(&n)
		assert.Truef(t, err == nil && n == c.keys, "%d: %d keys, %v", i, n, err)
	}
}
