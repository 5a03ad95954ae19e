// Serve runs the payment provider of the order example as a program:
//
//	go run ./examples/order/provider/serve -fail 0.1 -lose 0.1 -hang 0.05
//
// It forgets everything when it ends.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/pawlhq/pawl/examples/order/provider"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run serves until ctx ends, and writes to out where.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	flags.SetOutput(out)
	address := flags.String("address", "127.0.0.1:8090", "host and port to listen on")
	var chances provider.Chances
	flags.Float64Var(&chances.Fail, "fail", 0, "share of the requests that get a 500 and are not done")
	flags.Float64Var(&chances.Lose, "lose", 0, "share of the requests that are done and then cut off")
	flags.Float64Var(&chances.Hang, "hang", 0, "share of the requests that get no answer and are not done")
	flags.Uint64Var(&chances.Seed, "seed", uint64(time.Now().UnixNano()), "decides which requests, the same seed the same ones")
	if err := flags.Parse(args); err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", *address)
	if err != nil {
		return err
	}
	p := provider.New()
	p.Misbehave(chances.Behave)
	server := &http.Server{Handler: p, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	_, _ = fmt.Fprintf(out, "serving http://%s\n", listener.Addr()) // it serves also where nobody reads that
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	err = server.Close() // whoever hangs would hang for ever
	<-served             // it says that it was closed
	return err
}
