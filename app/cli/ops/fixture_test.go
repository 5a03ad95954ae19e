package ops_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/app/cli/flags"
	"github.com/pawlhq/pawl/app/cli/ops"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/examples/order"
	"github.com/pawlhq/pawl/examples/order/provider"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/internal/testkit/tables"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func TestMain(m *testing.M) { tables.Main(m) }

// program has the commands of operators, over the order and the bill, on a database
// of its own.
type program struct {
	t    *testing.T
	pool *pgxpool.Pool
	more []workflow.Source
}

func newProgram(t *testing.T) *program { return &program{t: t, pool: pgtest.Pool(t)} }

func (p *program) with(work func(e *engine.Engine) error, config engine.Config) error {
	config.Pool, config.Log = p.pool, slog.New(slog.DiscardHandler)
	config.Workflows = append([]workflow.Source{order.Workflow(provider.New()), bills()}, p.more...)
	e, err := engine.New(config)
	if err != nil {
		return err
	}
	defer e.Stop(context.Background())
	return work(e)
}

// serve works with an engine as a node has it.
func (p *program) serve(work func(e *engine.Engine)) {
	p.t.Helper()
	if err := p.with(func(e *engine.Engine) error {
		if err := e.Start(p.t.Context()); err != nil {
			return err
		}
		work(e)
		return nil
	}, engine.Config{}); err != nil {
		p.t.Fatal(err)
	}
}

// script runs statements on the database.
func (p *program) script(sql string) {
	p.t.Helper()
	if _, err := p.pool.Exec(p.t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
		p.t.Fatal(err)
	}
}

// try runs a command.
func (p *program) try(args string, more ...string) (stdout, stderr string, err error) {
	c := ops.Command(func(c *cobra.Command, u flags.Use, do func(context.Context, *http.Client) error) error {
		idle := engine.Config{Transient: true, InFlight: engine.InFlightConfig{Workers: -1},
			Retention: engine.RetentionConfig{Off: true, Outbox: u.KeepEvents}}
		return p.with(func(e *engine.Engine) error {
			start := e.StartReading
			if u.Commits {
				start = e.Start
			}
			if err := start(c.Context()); err != nil {
				return err
			}
			return overHTTP(c.Context(), e, do)
		}, idle)
	}, func(c *cobra.Command, cmd transitions.Command, op transitions.Operation) (r transitions.Receipt, after *transitions.Instance, err error) {
		err = p.with(func(e *engine.Engine) error {
			if cmd.BusinessKey != "" {
				inst, err := e.Read().InstanceByKey(c.Context(), cmd.Tenant, cmd.Workflow, cmd.BusinessKey)
				if err != nil {
					return err
				}
				cmd.Workflow, cmd.BusinessKey, cmd.Instance = "", "", inst.ID
			}
			r, after, err = e.Admin().DryRunOperation(c.Context(), cmd, op)
			return err
		}, engine.Config{})
		return r, after, err
	})
	c.SilenceErrors, c.SilenceUsage = true, true
	c.SetArgs(append(strings.Fields(args), more...))
	var out, errs bytes.Buffer
	c.SetOut(&out)
	c.SetErr(&errs)
	err = c.ExecuteContext(p.t.Context())
	return out.String(), errs.String(), err
}

// overHTTP calls do with a client of an engine's API.
func overHTTP(ctx context.Context, e *engine.Engine, do func(context.Context, *http.Client) error) error {
	a, err := api.New(e, api.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	server := httptest.NewServer(a)
	defer server.Close()
	return do(ctx, &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", server.Listener.Addr().String())
	}}})
}

// run runs a command that has to succeed, and has no more to say.
func (p *program) run(args string, more ...string) string {
	p.t.Helper()
	stdout, stderr, err := p.try(args, more...)
	if err != nil || stderr != "" {
		p.t.Fatalf("%s: %v, %s", args, err, stderr)
	}
	return stdout
}

// fails runs a command that has to fail, and to say why.
func (p *program) fails(args string, why ...string) {
	p.t.Helper()
	stdout, _, err := p.try(args)
	if err == nil {
		err = errors.New("no error")
	}
	for _, w := range why {
		if !strings.Contains(err.Error(), w) || stdout != "" {
			p.t.Errorf("%s: %v, want %s; %s", args, err, w, stdout)
		}
	}
}

func submit(t *testing.T, e *engine.Engine, c transitions.Command) {
	t.Helper()
	r, err := e.Submit(t.Context(), c)
	if err == nil {
		err = r.Err()
	}
	require.NoError(t, err)
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
)

// wantTable compares a table whose times and instances do not matter.
func wantTable(t *testing.T, got, want string) {
	t.Helper()
	got = times.ReplaceAllString(got, "(a time in UTC)     ")
	got = instances.ReplaceAllString(got, "(its id)                            ")
	var lines []string
	for line := range strings.Lines(got) {
		lines = append(lines, strings.TrimRight(line, " \n"))
	}
	got = strings.Join(lines, "\n")
	assert.Equalf(t, strings.TrimPrefix(want, "\n"), got, "got\n \nwant%s", want)
}
