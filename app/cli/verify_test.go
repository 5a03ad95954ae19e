package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/testkit/pgtest"
)

func TestVerifyNamesTheFirstBrokenRow(t *testing.T) {
	u := &user{t: t, database: pgtest.URL(t)}
	u.gets("migrate up")
	var ids []string
	for i := range 3 {
		u.places(fmt.Sprint(i))
		ids = append(ids, idOf(u, fmt.Sprint("order#c-1:", i)))
		u.gets(fmt.Sprintf(`submit order#c-1:%d cancel {"reason":"late"}`, i))
	}
	change := func(sql string, args ...any) {
		t.Helper()
		on(t, u.database, func(c *pgx.Conn) {
			tag, err := c.Exec(t.Context(), sql, args...)
			require.NoError(t, err)
			require.EqualValues(t, 1, tag.RowsAffected())
		})
	}
	assert.Equal(t, "intact: 6 rows of 3 instances of tenant default\n", u.gets("verify"))
	change(`UPDATE pawl.audit SET actor = 'x' WHERE instance = $1 AND version = 2`, ids[1])
	broken := "instance " + ids[1] + ", version 2: the row was changed, or the one before it, or the instance before this transition\n"
	for args, want := range map[string]string{"": "broken: " + broken, "-o json": `"intact": false`, "--instance " + ids[1]: "broken"} {
		code, stdout, stderr := u.calls(append([]string{"verify"}, strings.Fields(args)...)...)
		assert.Equal(t, 1, code, args)
		assert.Contains(t, stdout, want, args)
		assert.Contains(t, stderr, broken, args)
	}
	assert.Equal(t, "intact: 2 rows of 1 instances of tenant default\n", u.gets("verify --instance "+ids[0]))
	change(`UPDATE pawl.audit SET actor = 'local' WHERE instance = $1 AND version = 2`, ids[1])
	change(`UPDATE pawl.log SET head = 7`)
	u.fails("verify", 1, "the log: the log's head is 7")
	u.fails("verify --tenant nope", 1, "shop: no such tenant: nothing to verify: tenant \"nope\" has no transitions in this database\n")
	u.fails("verify --instance 00000000-0000-8000-8000-000000000000", 1, "instance_not_found")
	u.fails("verify --instance=", 2, "--instance is not a UUID")
	u.fails("verify --instance 00000000-0000-0000-0000-000000000000", 2, "--instance is not a UUID")
}
