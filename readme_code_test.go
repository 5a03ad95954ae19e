package pawl

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/pgtest"
)

// What the README shows of embedding, and of work that takes time, does what it
// says.
func TestREADMECodeRuns(t *testing.T) {
	t.Parallel()
	dir := shownCode(t)
	program := build(t, dir)
	t.Run("from Go", func(t *testing.T) {
		c := exec.CommandContext(t.Context(), program)
		c.Env = append(os.Environ(), "DATABASE_URL="+pgtest.EmptyURL(t))
		c.WaitDelay = time.Minute // also for what it has written to be read
		out, err := c.Output()
		const want = "requested 1 false\nrequested 1 true\ndays left: 22\napproved 3 \"P-18\" asked twice with one key: true\n"
		if err != nil || string(out) != want {
			t.Errorf("%v\n got %s\nwant %s", err, out, want)
		}
	})
	t.Run("with curl", func(t *testing.T) {
		_, section := readme(t)
		converse(t, program, section)
	})
	t.Run("its tests", func(t *testing.T) {
		out, err := exec.CommandContext(t.Context(), "go", "test", "-ldflags=-w", "-v", "./"+dir).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "--- PASS: TestUndecidedRequestIsRejected") {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

// shownCode makes a program of everything that the README shows, and of a driver
// for it.
func shownCode(t *testing.T) (dir string) {
	t.Helper()
	text, section := readme(t)
	code := append(blocks(t, text, "go"), blocks(t, section, "go")...)
	whole := strings.Replace(code[0], "func main() { pawl.Main(Workflow) }", "", 1)
	whole = strings.Replace(whole, "\t\"github.com/pawlhq/pawl\"\n", "", 1)
	snippets, tests := snippetImports, testImports
	for _, block := range code[1:] {
		if strings.HasPrefix(block, "func Test") {
			tests += block
		} else {
			snippets += block + "\n"
		}
	}
	return folder(t, map[string]string{"main.go": whole, "snippets.go": snippets, "leave_test.go": tests, "driver.go": driver})
}

const snippetImports = `package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/schema"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

`

const testImports = `package main

import (
	"testing"
	"time"

	"github.com/pawlhq/pawl/pawltest"
)

`

// driver runs what the README shows: with arguments as a service with both
// versions, else from Go.
const driver = `package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func main() {
	if len(os.Args) > 1 {
		pawl.Main(Workflow, Version2(&payroll{}))
	}
	if err := drive(context.Background()); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func drive(ctx context.Context) error {
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := run(ctx, pool); err != nil {
		return err
	}
	if err := run(ctx, pool); err != nil {
		return err
	}
	if _, err := pool.Exec(ctx, "CREATE TABLE employee AS SELECT 'Ann' AS name, 30 AS days_left"); err != nil {
		return err
	}
	withSQL := workflow.Define("leave", 3, workflow.Start("request", Requested, request), approve).Final(Approved).Roles("manager")
	eng, err := begin(ctx, pool, withSQL)
	if err != nil {
		return err
	}
	defer eng.Stop(ctx)
	c := transitions.Command{Workflow: "leave", Transition: "request", Key: "form-18", Payload: []byte(` + "`" + `{"number":"L-18","employee":"Ann","days":5}` + "`" + `)}
	for range 2 { // the second is a retry, and must not take the days again
		if err := requestWithDays(ctx, pool, eng, c); err != nil {
			return err
		}
	}
	receipt, err := eng.Submit(ctx, c)
	if err != nil {
		return err
	}
	receipt, err = eng.Submit(ctx, transitions.Command{Transition: "approve", Instance: receipt.Instance, Key: "verdict-18", Roles: []string{"manager"}})
	if err != nil {
		return err
	}
	if err := receipt.Err(); err != nil {
		return err
	}
	var left int
	if err := pool.QueryRow(ctx, "SELECT days_left FROM employee").Scan(&left); err != nil {
		return err
	}
	fmt.Println("days left:", left)
	return book(ctx, pool)
}

func begin(ctx context.Context, pool *pgxpool.Pool, w workflow.Source) (*engine.Engine, error) {
	eng, err := engine.New(engine.Config{Pool: pool, Workflows: []workflow.Source{w}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	return eng, eng.Start(ctx)
}

// payroll is down at first.
type payroll struct{ asked []string }

func (p *payroll) Book(_ context.Context, key, employee string, days int) (string, error) {
	if p.asked = append(p.asked, key); len(p.asked) == 1 {
		return "", fmt.Errorf("payroll is down")
	}
	return "P-18", nil
}

func (p *payroll) Cancel(context.Context, string) error { return nil }

func book(ctx context.Context, pool *pgxpool.Pool) error {
	books := &payroll{}
	eng, err := begin(ctx, pool, Version2(books))
	if err != nil {
		return err
	}
	defer eng.Stop(ctx)
	c := transitions.Command{Workflow: "leave", Transition: "request", Key: "form-20", Payload: []byte(` + "`" + `{"number":"L-20","employee":"Ann","days":5}` + "`" + `)}
	receipt, err := eng.Submit(ctx, c)
	if err != nil {
		return err
	}
	result, err := finish(ctx, eng, transitions.Command{Transition: "approve", Instance: receipt.Instance, Key: "verdict-20", Actor: "mia", Roles: []string{"manager"}})
	if err != nil {
		return err
	}
	once := len(books.asked) == 2 && books.asked[0] == books.asked[1]
	fmt.Println(result.State, result.Version, string(result.Result), "asked twice with one key:", once)
	return nil
}
`
