// Withnats runs a command with a NATS server with JetStream, whose URL is in the command's environment as NATS_URL. The server and its data
// are removed when the command ends. Run it with bin/withnats bin/bench.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/pawlhq/pawl/outbox/sink/natstest"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: withnats command [argument...]")
		os.Exit(2)
	}
	err := run(os.Args[1], os.Args[2:])
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		os.Exit(max(exit.ExitCode(), 1)) // it has said why itself
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "withnats:", err)
		os.Exit(1)
	}
}

func run(name string, args []string) (err error) {
	folder, err := os.MkdirTemp("", "pawl-nats-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	server, err := natstest.New(folder)
	if err != nil {
		return err
	}
	defer server.Down()
	// An interrupt from the terminal goes to the command too, and ends it.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	command := exec.Command(name, args...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	command.Env = append(os.Environ(), "NATS_URL="+server.URL())
	return command.Run()
}
