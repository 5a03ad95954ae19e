package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/app/service"
	"github.com/pawlhq/pawl/client"
	"github.com/pawlhq/pawl/examples/order"
	"github.com/pawlhq/pawl/examples/order/provider"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/workflow"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// run executes the command line over the order workflow.
func run(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	return runOver(ctx, []workflow.Source{order.Workflow(provider.New())}, args...)
}

func runOver(ctx context.Context, workflows []workflow.Source, args ...string) (code int, stdout, stderr string) {
	root := CommandLine(workflows...)
	root.Use = "shop"
	root.SetArgs(args)
	var out, errs bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&errs)
	code = execute(ctx, root)
	return code, out.String(), errs.String()
}

// serving starts a service on a database of its own, with the order workflow.
func serving(t *testing.T, change ...func(*service.Config)) *service.Service {
	t.Helper()
	config := service.Config{Workflows: []workflow.Source{order.Workflow(provider.New())},
		Database: pgtest.URL(t), Address: "127.0.0.1:0", Log: slog.New(slog.DiscardHandler)}
	for _, f := range change {
		f(&config)
	}
	s, err := service.Start(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Stop(context.Background())) })
	return s
}

// user runs commands with a server, or with its database if there is no server.
type user struct {
	t        *testing.T
	url      string
	database string
}

func newUser(t *testing.T, change ...func(*service.Config)) *user {
	t.Helper()
	u := &user{t: t}
	u.url = serving(t, append(change, func(c *service.Config) { u.database = c.Database })...).URL()
	return u
}

func (u *user) calls(args ...string) (code int, stdout, stderr string) {
	if u.url == "" {
		return run(u.t.Context(), append(args, "--database", u.database)...)
	}
	return run(u.t.Context(), append(args, "--server", u.url)...)
}

// gets returns the output of a command that has to succeed; args are separated by blanks.
func (u *user) gets(args string) string {
	u.t.Helper()
	code, stdout, stderr := u.calls(strings.Fields(args)...)
	require.Equal(u.t, 0, code, args, stderr)
	return stdout
}

// fails requires an exit code and a text in the standard error.
func (u *user) fails(args string, want int, text string) {
	u.t.Helper()
	code, _, stderr := u.calls(strings.Fields(args)...)
	assert.Equal(u.t, want, code, args, stderr)
	assert.Contains(u.t, stderr, text, args)
}

// places places an order of customer c-1.
func (u *user) places(cart string, more ...string) string {
	u.t.Helper()
	return u.gets(`submit order place {"customer":"c-1","cart":"` + cart + `","total":900000,"currency":"EUR"} ` + strings.Join(more, " "))
}

// read decodes the last line of JSON, or the only value, that a command prints.
func read[T any](u *user, args string) (v T) {
	u.t.Helper()
	d := json.NewDecoder(strings.NewReader(u.gets(args)))
	require.True(u.t, d.More(), args)
	for d.More() {
		require.NoError(u.t, d.Decode(&v), args)
	}
	return v
}

func idOf(u *user, instance string) string {
	return read[client.InstanceView](u, "get "+instance+" -o json").ID.String()
}

// on calls f with a connection to a database.
func on(t *testing.T, url string, f func(*pgx.Conn)) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer func() { _ = conn.Close(t.Context()) }()
	f(conn)
}

// count returns the number that a query selects.
func (u *user) count(query string) (n int) {
	u.t.Helper()
	on(u.t, u.database, func(c *pgx.Conn) { require.NoError(u.t, c.QueryRow(u.t.Context(), query).Scan(&n)) })
	return n
}
