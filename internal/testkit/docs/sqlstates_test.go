package docs_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/kernel/sqlstate"
	"github.com/pawlhq/pawl/internal/testkit/docs"
	"github.com/pawlhq/pawl/workflow"
)

func TestSQLStates_Golden(t *testing.T) {
	docs.File(t, "docs/sqlstates.md", sqlstatesDocument())
}

// The functions raise no SQLSTATE without advice.
func TestSQLStatesOfTheContractHaveAdvice(t *testing.T) {
	_, table, _ := strings.Cut(page(t, "docs/sql.md"), "\n## SQLSTATEs\n")
	table, _, _ = strings.Cut(table, "\n\n")
	states := regexp.MustCompile(`(?m)^\| ([0-9A-Z]{5})(?:, ([0-9A-Z]{5}))? \|`).FindAllStringSubmatch(table, -1)
	require.Truef(t, len(states) >= 15, "docs/sql.md has a table of %d rows", len(states))
	for _, row := range states {
		for _, state := range row[1:] {
			assert.Falsef(t, state != "" && sqlstate.Find(&pgconn.PgError{Code: state}, "") == nil,
				"%s has no row in sqlstate.Rows", state)
		}
	}
}

func sqlstatesDocument() string {
	var b strings.Builder
	b.WriteString(`# SQLSTATEs: retry or not

This page says for each error of PostgreSQL whether a retry helps, where, and with which key. It is generated from the table that the engine
follows (` + "`internal/kernel/sqlstate`" + `) by ` + "`make generate`" + `, and tests raise each error and follow its advice:
` + "`TestSQLStatesFromSQL` in `schema`, `TestSQLStatesFromGo` in `engine`" + `.

Three rules cover most of it:

- Keep the key. A new key is a new intent, so a retry with a new key can do the work twice. Only a new intent gets a new key.
- An error ends the transaction. A retry behind a savepoint keeps the snapshot and the locks, so it can fail again; begin another one.
- After a lost connection the outcome of a COMMIT is unknown. The same key finds out: the claim returns ` + "`replay`" + `, or the work is
  done now.

## From SQL

For callers of the [functions](sql.md). *At the transaction boundary* means: roll back, begin another transaction, claim the key again. *By
the caller, later* means the same after a pause that grows with each attempt, with jitter. *In the function* means that the function
does it by itself, and the error does not reach the caller.

| SQLSTATE | meaning | retry | where | key |
|---|---|---|---|---|
`)
	for i := range sqlstate.Rows {
		r := &sqlstate.Rows[i]
		retry, where, key := "yes", string(r.Where), string(r.Key)
		switch {
		case r.Where == "" && r.Key == sqlstate.NewKey:
			retry, key = "no", string(r.Key)+", for a new intent"
		case r.Where == "":
			retry, key = "no", "change the call"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", stateOf(r), r.Meaning, retry, where, key)
	}
	b.WriteString("| others | a defect, in the statement or in the server | no |  | change the call |\n")
	b.WriteString(`
## From Go and over HTTP

The engine classifies the errors of its own statements, and repeats the command itself. Its callers get a [code](errors.md) if that is in
vain. ` + "`LockWait` and `Outage`" + ` are fields of ` + "`engine.PipelineConfig`" + `. The last column is for the SQL of a transition
(` + "`engine.InTx`" + `): that SQL may talk to other servers and set limits of its own, so only a conflict is repeated.

| SQLSTATE | the engine | code, if in vain | the same key again | code, from the transition's own SQL |
|---|---|---|---|---|
`)
	again := func(code workflow.Code) string {
		if code.Info().Retry {
			return "may succeed later"
		}
		return "is refused again"
	}
	for i := range sqlstate.Rows {
		if r := &sqlstate.Rows[i]; r.Class != sqlstate.Defect {
			fmt.Fprintf(&b, "| %s | %s | `%s` | %s | `%s` |\n", stateOf(r), r.Class.Engine(), r.Class.Code(), again(r.Class.Code()), r.OwnCode())
		}
	}
	defect := sqlstate.Defect
	fmt.Fprintf(&b, "| others | %s | `%s` | %s, after the defect is fixed | `%s` |\n", defect.Engine(), defect.Code(), again(defect.Code()),
		defect.OwnCode())
	b.WriteString(`
In a transaction of the caller (` + "`Engine.SubmitTx`" + `) the engine repeats a conflict up to three times behind a savepoint,
makes a missing partition, and repeats nothing else. The caller gets the code of the table: roll back, begin another
transaction, and submit with the same key.

Callers in Go and over HTTP get a code where callers of the functions get a SQLSTATE of Pawl:

| SQLSTATE | code | status | retry | key |
|---|---|---|---|---|
`)
	for _, c := range workflow.Codes {
		if c.SQLState == "" {
			continue
		}
		retry, key := "no", "change the request"
		switch r := sqlstate.Find(&pgconn.PgError{Code: c.SQLState}, ""); {
		case r.Where != "":
			retry, key = "yes", string(r.Key)
		case r.Key != "":
			key = string(r.Key) + ", for a new intent"
		}
		fmt.Fprintf(&b, "| %s | [`%s`](errors.md#%s) | %d | %s | %s |\n", c.SQLState, c.Code, c.Code, c.Status, retry, key)
	}
	return b.String()
}

// stateOf is the SQLSTATE with the constraints or the table that the row is limited to.
func stateOf(r *sqlstate.Row) string {
	if r.On == nil {
		return r.State
	}
	return r.State + " on `" + strings.Join(r.On, "`, `") + "`"
}
