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
	b.WriteString(`# SQLSTATEs

This page lists for each error of PostgreSQL whether a retry helps, where, and with which key. It is generated from the table of the engine
(` + "`internal/kernel/sqlstate`) by `make generate`" + `, and tests raise each error and follow the advice:
` + "`TestSQLStatesFromSQL` in `schema`, `TestSQLStatesFromGo` in `engine`" + `.

- Retry with the same key. A new key is a new intent, so the work could be done twice.
- An error ends the transaction. A retry behind a savepoint keeps the snapshot and the locks and can fail again; begin a new transaction.
- After a lost connection the outcome of a COMMIT is unknown. A retry with the same key gets ` + "`replay`" + ` from the claim, or executes the
  command.

## From SQL

For callers of the [functions](sql.md). *At the transaction boundary*: roll back, begin another transaction, claim the key again. *By the caller,
later*: the same after a growing pause with jitter. *In the function*: the function retries itself.

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

The engine retries commands itself. Its callers get a [code](errors.md) if that fails. ` + "`LockWait` and `Outage`" + ` are fields of
` + "`engine.PipelineConfig`" + `. The last column is for the SQL of a transition (` + "`engine.InTx`" + `), which may access other servers and set its
own limits, so only conflicts are retried.

| SQLSTATE | the engine | code | the same key again | code, from the transition's own SQL |
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
In a transaction of the caller (` + "`Engine.SubmitTx`" + `) the engine retries conflicts up to three times behind a savepoint, and creates
missing partitions. Otherwise the caller gets the code: roll back, begin another transaction, and submit with the same key.

Pawl's own SQLSTATEs correspond to these codes:

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
