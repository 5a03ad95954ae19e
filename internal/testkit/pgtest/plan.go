package pgtest

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Step is a node of a plan.
type Step struct {
	Type     string  `json:"Node Type"`
	Relation string  `json:"Relation Name"`
	Index    string  `json:"Index Name"`
	Cond     string  `json:"Index Cond"`
	Goes     string  `json:"Scan Direction"` // "Forward" or "Backward", of an index scan
	Removed  float64 `json:"Rows Removed by Filter"`
	Loops    float64 `json:"Actual Loops"`
	Rows     float64 `json:"Actual Rows"` // on average, each time that it was run; PostgreSQL 18 gives a fraction
	Hit      int     `json:"Shared Hit Blocks"`
	Read     int     `json:"Shared Read Blocks"`
}

// Explain returns the steps of a statement's plan, each before what it reads from. It sends the statement after "EXPLAIN
// (FORMAT JSON) "; the options may say more, such as "ANALYZE, ".
func Explain(t testing.TB, by interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}, options, sql string, args ...any) (steps []Step) {
	t.Helper()
	var raw []byte
	if err := by.QueryRow(t.Context(), fmt.Sprintf("EXPLAIN (%sFORMAT JSON) %s", options, SQL(sql)), args...).Scan(&raw); err != nil {
		t.Fatal(err)
	}
	type node struct {
		Step
		Plans []node
	}
	var plans []struct{ Plan node }
	if err := json.Unmarshal(raw, &plans); err != nil || len(plans) == 0 {
		t.Fatalf("pgtest: no plan, %v: %s", err, raw)
	}
	var add func(n node)
	add = func(n node) {
		steps = append(steps, n.Step)
		for _, sub := range n.Plans {
			add(sub)
		}
	}
	for _, p := range plans {
		add(p.Plan)
	}
	return steps
}

// RowsRead executes a statement, and counts the rows that it reads of tables and their indexes.
func RowsRead(t testing.TB, by interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}, sql string, args ...any) (rows float64) {
	t.Helper()
	for _, s := range Explain(t, by, "ANALYZE, ", sql, args...) {
		if s.Relation != "" {
			rows += (s.Rows + s.Removed) * s.Loops
		}
	}
	return rows
}

// Pages executes a statement, and counts the pages of tables and indexes that it looks at, those that functions look
// at for it among them.
func Pages(t testing.TB, by interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}, sql string, args ...any) int {
	t.Helper()
	whole := Explain(t, by, "ANALYZE, BUFFERS, ", sql, args...)[0]
	return whole.Hit + whole.Read
}

// ExplainPrepared returns the steps of the plan that a session makes of a prepared statement with so many parameters, all
// of them NULL, after the settings, which end with the transaction. Where these or the session's ask for generic plans,
// it is the plan for all parameters.
func ExplainPrepared(t testing.TB, by interface {
	Begin(ctx context.Context) (pgx.Tx, error)
}, settings, sql string, parameters int) (steps []Step) {
	t.Helper()
	err := pgx.BeginFunc(t.Context(), by, func(tx pgx.Tx) error {
		for _, s := range []string{settings, "PREPARE explained AS " + SQL(sql)} {
			if _, err := tx.Exec(t.Context(), s); err != nil {
				return err
			}
		}
		nulls := strings.TrimSuffix(strings.Repeat("NULL, ", parameters), ", ")
		steps = Explain(t, tx, "", fmt.Sprintf("EXECUTE explained(%s)", nulls))
		_, err := tx.Exec(t.Context(), "DEALLOCATE explained")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return steps
}

// SQL is a statement of the product for the schema of the tests; see schema.In.
func SQL(text string) string { return strings.ReplaceAll(text, "{pawl}", "pawl") }

var documented = regexp.MustCompile(`\b(pawl)(\.| TO )`)

// Documented returns SQL of the documentation, which names the default schema, for the schema of the tests.
func Documented(text string) string { return documented.ReplaceAllString(text, SQL("{pawl}")+"$2") }
