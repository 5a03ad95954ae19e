package ops_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/app/cli"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/examples/order"
	"github.com/pawlhq/pawl/examples/order/provider"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/internal/testkit/tables"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func TestMain(m *testing.M) { tables.Main(m) }

// program runs operator commands on a database of its own, without a server.
type program struct {
	t         *testing.T
	pool      *pgxpool.Pool
	workflows []workflow.Source
}

func newProgram(t *testing.T, more ...workflow.Source) *program {
	return &program{t, pgtest.Pool(t), append(more, order.Workflow(provider.New()), bills())}
}

// serve calls work with a running engine.
func (p *program) serve(work func(e *engine.Engine)) {
	p.t.Helper()
	e, err := engine.New(engine.Config{Pool: p.pool, Workflows: p.workflows, Log: slog.New(slog.DiscardHandler)})
	require.NoError(p.t, err)
	defer e.Stop(context.Background())
	require.NoError(p.t, e.Start(p.t.Context()))
	work(e)
}

// script runs statements on the database.
func (p *program) script(sql string) {
	p.t.Helper()
	_, err := p.pool.Exec(p.t.Context(), sql, pgx.QueryExecModeSimpleProtocol)
	require.NoError(p.t, err)
}

// try runs a command.
func (p *program) try(args string, more ...string) (stdout, stderr string, err error) {
	c := cli.CommandLine(p.workflows...)
	c.SilenceErrors, c.SilenceUsage = true, true
	c.SetArgs(slices.Concat([]string{"ops"}, strings.Fields(args), more, []string{"--database", p.pool.Config().ConnString(), "--log-level", "error"}))
	var out, errs bytes.Buffer
	c.SetOut(&out)
	c.SetErr(&errs)
	err = c.ExecuteContext(p.t.Context())
	return out.String(), errs.String(), err
}

// run runs a command that succeeds with an empty standard error.
func (p *program) run(args string, more ...string) string {
	p.t.Helper()
	stdout, stderr, err := p.try(args, more...)
	require.NoError(p.t, err, args)
	require.Empty(p.t, stderr, args)
	return stdout
}

// has requires that a command succeeds and prints all of these texts.
func (p *program) has(args string, texts ...string) {
	p.t.Helper()
	got := p.run(args)
	for _, text := range texts {
		assert.Contains(p.t, got, text, args)
	}
}

// fails requires that a command fails with all of these texts, and prints nothing.
func (p *program) fails(args string, why ...string) {
	p.t.Helper()
	stdout, _, err := p.try(args)
	assert.Empty(p.t, stdout, args)
	for _, w := range why {
		assert.ErrorContains(p.t, err, w, args)
	}
}

// read decodes the JSON that a command prints.
func read[T any](p *program, args string) (v T) {
	p.t.Helper()
	require.NoError(p.t, json.Unmarshal([]byte(p.run(args+" -o json")), &v), args)
	return v
}

func submit(t *testing.T, e *engine.Engine, c transitions.Command) string {
	t.Helper()
	r, err := e.Submit(t.Context(), c)
	require.NoError(t, err)
	require.NoError(t, r.Err())
	return r.Instance.String()
}

// orders places n orders and cancels them.
func (p *program) orders(n int) {
	p.t.Helper()
	p.serve(func(e *engine.Engine) {
		for i := range n {
			submit(p.t, e, place(i))
			submit(p.t, e, transitions.Command{Workflow: "order", Transition: "cancel", Key: "cancel", BusinessKey: fmt.Sprint("c:", i),
				Payload: []byte(`{"reason":"out of stock"}`)})
		}
	})
}

func place(i int) transitions.Command {
	return transitions.Command{Workflow: "order", Transition: "place", Key: fmt.Sprint("place-", i),
		Payload: fmt.Appendf(nil, `{"customer":"c","cart":"%d","total":1,"currency":"EUR"}`, i)}
}

var (
	times     = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)
	instances = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}`)
	trailing  = regexp.MustCompile(`(?m) +$`)
)

// wantTable compares a table without its times and ids.
func wantTable(t *testing.T, got, want string) {
	t.Helper()
	got = times.ReplaceAllString(got, "(a time in UTC)     ")
	got = instances.ReplaceAllString(got, "(its id)                            ")
	got = trailing.ReplaceAllString(got, "")
	assert.Equal(t, strings.TrimPrefix(want, "\n"), strings.TrimSuffix(got, "\n"))
}
