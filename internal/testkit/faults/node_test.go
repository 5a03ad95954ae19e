package faults

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/examples/fines"
	"github.com/pawlhq/pawl/examples/order"
	"github.com/pawlhq/pawl/examples/order/provider"
	"github.com/pawlhq/pawl/workflow"
)

// A node is this test binary as a program of its own. It gets its configuration from the environment and serves until its standard input
// ends, so that it never outlives the test.
const (
	nodeDatabase = "PAWL_FAULTS_NODE_DATABASE"
	nodeProvider = "PAWL_FAULTS_NODE_PROVIDER" // where orders are paid; "" for a node without orders
	nodeNATS     = "PAWL_FAULTS_NODE_NATS"     // the server of the sink "nats"; "" for a node without
	nodeWebhook  = "PAWL_FAULTS_NODE_WEBHOOK"  // the endpoint of the sink "webhook"; "" for a node without
	nodeSecret   = "PAWL_FAULTS_NODE_SECRET"   // what it is signed with
	nodeInbox    = "PAWL_FAULTS_NODE_INBOX"    // the server of the bank's messages; "" for a node that gets none
)

// isNode reports whether this process is a node.
func isNode() bool { return os.Getenv(nodeDatabase) != "" }

// runNode serves the workflows of the tests over HTTP.
func runNode() error {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, os.Getenv(nodeDatabase))
	if err != nil {
		return err
	}
	defer pool.Close()
	config := engine.Config{Pool: pool, Workflows: []workflow.Source{counter, fines.Workflow}, Log: slog.New(slog.DiscardHandler)}
	if url := os.Getenv(nodeProvider); url != "" {
		config.Workflows = append(config.Workflows, order.Workflow(&provider.Client{URL: url}))
		config.InFlight.Lease = shortLease
	}
	migrates := os.Getenv(nodeMigrates) != ""
	if migrates {
		config.Workflows = append(config.Workflows, firstParcels, secondParcels(parcelPlan()))
	}
	if url := os.Getenv(nodeInbox); url != "" {
		source, err := bankSource(url)
		if err != nil {
			return err
		}
		withBank(&config, source)
	}
	if config.Sinks, err = nodeSinks(); err != nil {
		return err
	}
	config.SinkLease = sinkLease
	e, err := engine.New(config)
	if err != nil {
		return err
	}
	if err := e.Start(ctx); err != nil {
		return err
	}
	defer e.Stop(ctx)
	if migrates {
		if err := migrateParcels(ctx, e); err != nil {
			return err
		}
	}
	a, err := api.New(e, api.Config{})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: a}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = server.Shutdown(ctx)
	}()
	fmt.Println("serving", listener.Addr())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// node is a running node, seen from the test.
type node struct {
	address string // host:port
	command *exec.Cmd
	ended   func() error // waits for it
	input   io.Closer
}

// startNode starts a node on the pool's database and waits until it serves.
func startNode(t testing.TB, pool *pgxpool.Pool, env ...string) *node {
	t.Helper()
	n, err := launch(t, pool, env...)
	require.NoError(t, err)
	return n
}

// launch is startNode for goroutines too.
func launch(t testing.TB, pool *pgxpool.Pool, env ...string) (*node, error) {
	n := &node{command: exec.Command(os.Args[0])}
	n.command.Env = append(os.Environ(), nodeDatabase+"="+pool.Config().ConnString(), "GORACE=atexit_sleep_ms=0") // many end
	n.command.Env = append(n.command.Env, env...)
	n.command.Stderr = t.Output()
	var err error
	if n.input, err = n.command.StdinPipe(); err != nil {
		return nil, err
	}
	output, err := n.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := n.command.Start(); err != nil {
		return nil, err
	}
	n.ended = sync.OnceValue(n.command.Wait)
	t.Cleanup(n.kill)
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("the node said %q: %w", line, err)
	}
	n.address = strings.TrimSpace(strings.TrimPrefix(line, "serving "))
	return n, nil
}

// kill ends the node as a power cut does. It may be called again.
func (n *node) kill() {
	_ = n.command.Process.Kill()
	_ = n.ended() // says that it was killed
}

// end lets the node stop in its own time, and fails the test if it ends badly.
func (n *node) end(t testing.TB) {
	t.Helper()
	_ = n.input.Close()
	assert.NoError(t, n.ended(), "the node ended with")
}
