package pawl_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/examples/order"
	"github.com/pawlhq/pawl/examples/order/provider"
	"github.com/pawlhq/pawl/tracing/opentelemetry"
	"github.com/pawlhq/pawl/tracing/opentelemetry/sampler"
	"github.com/pawlhq/pawl/workflow"
)

// A service with a command of its own.
func ExampleProgram() {
	flags := flag.NewFlagSet("import", flag.ContinueOnError)
	year := flags.Int("year", 2025, "import the orders of this year")
	program := pawl.Program{
		Workflows: []workflow.Source{order.Workflow(&provider.Client{URL: os.Getenv("PAYMENTS")})},
		Commands: []pawl.Subcommand{{Usage: "import FILE", Short: "Import old orders", Flags: flags,
			Run: func(_ context.Context, c pawl.Call) error {
				_, err := fmt.Fprintln(c.Out, "importing", c.Args[0], "of", *year, "into the schema", c.Config.Schema)
				return err
			}}},
		Args: []string{"import", "orders.csv", "--year", "2024"},
	}
	fmt.Println("exit code", program.Run())

	// Output:
	// importing orders.csv of 2024 into the schema pawl
	// exit code 0
}

// A service in a program that has a main of its own.
func ExampleStart() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	orders := order.Workflow(&provider.Client{URL: os.Getenv("PAYMENTS")})
	service, err := pawl.Start(ctx, pawl.Config{Workflows: []workflow.Source{orders}})
	if err != nil {
		log.Fatal(err)
	}
	log.Print("serving at ", service.URL())
	if err := service.Wait(ctx); err != nil {
		log.Print(err)
	}
	if err := service.Stop(context.WithoutCancel(ctx)); err != nil {
		log.Print(err)
	}
}

// A service that is traced with OpenTelemetry: one of a hundred of the traces that begin here, and those that their callers sample.
func ExampleStart_traced() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	traces := sdktrace.NewTracerProvider( // with an exporter: sdktrace.WithBatcher
		sdktrace.WithSampler(sdktrace.ParentBased(sampler.Linked(sdktrace.TraceIDRatioBased(0.01)))))
	service, err := pawl.Start(ctx, pawl.Config{
		Workflows: []workflow.Source{order.Workflow(&provider.Client{URL: os.Getenv("PAYMENTS")})},
		Tracer:    opentelemetry.Tracer(traces),
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := errors.Join(service.Wait(ctx), service.Stop(context.WithoutCancel(ctx)),
		traces.Shutdown(context.WithoutCancel(ctx))); err != nil {
		log.Print(err)
	}
}
