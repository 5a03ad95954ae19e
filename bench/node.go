package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/workflow"
)

// A node is this program, started again: one that can migrate orders, and can be killed. It is told its database by the environment and
// works until its standard input ends, so it never outlives the run.
const nodeDatabase = "PAWL_BENCH_NODE_DATABASE"

// IsNode reports whether this program was started as a node of a run: then it is to call RunNode and nothing else.
func IsNode() bool { return os.Getenv(nodeDatabase) != "" }

// RunNode works until the standard input ends.
func RunNode(ctx context.Context) error {
	d := &database{url: os.Getenv(nodeDatabase)}
	pool, err := d.pool(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	c := engine.Config{Pool: pool, Schema: benchSchema, Workflows: []workflow.Source{definition, orders(2, askNothing).Migrate(orderPlan())},
		Log: slog.New(slog.DiscardHandler)}
	c.Retention.Off = true
	eng, err := engine.New(c)
	if err != nil {
		return err
	}
	defer eng.Stop(context.WithoutCancel(ctx))
	if err := eng.Start(ctx); err != nil {
		return err
	}
	fmt.Println("ready")
	input := bufio.NewScanner(os.Stdin)
	for err == nil && input.Scan() { // a line begins the migration
		err = beginMigration(ctx, eng, migratedEachSecond)
	}
	return err
}

// node is one that runs.
type node struct {
	command *exec.Cmd
	input   io.WriteCloser
	frozen  bool
}

// startNode starts a node, and waits until it is ready.
func startNode(ctx context.Context, url string) (*node, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	n := &node{command: exec.CommandContext(ctx, program)}
	n.command.Env = append(os.Environ(), nodeDatabase+"="+url)
	n.command.Stderr = os.Stderr
	if n.input, err = n.command.StdinPipe(); err != nil {
		return nil, err
	}
	output, err := n.command.StdoutPipe()
	if err == nil {
		err = n.command.Start()
	}
	if err != nil {
		return nil, err
	}
	if line, err := bufio.NewReader(output).ReadString('\n'); err != nil {
		n.kill()
		return nil, fmt.Errorf("the node said %q: %w", line, err)
	}
	return n, nil
}

// freeze stops the node's process without cost to others, until it continues.
func (n *node) freeze() error {
	n.frozen = true
	return n.command.Process.Signal(syscall.SIGSTOP)
}

func (n *node) goOn() error {
	n.frozen = false
	return n.command.Process.Signal(syscall.SIGCONT)
}

// kill ends the node as a power cut does.
func (n *node) kill() {
	_ = n.command.Process.Kill()
	_ = n.command.Wait() // says that it was killed
}

// pidOf is the process of an engine, which is in its name: "host-pid-x". 0: of none.
func pidOf(name string) int {
	parts := strings.Split(name, "-")
	pid, _ := strconv.Atoi(parts[max(0, len(parts)-2)])
	return pid
}
