package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"

	"github.com/spf13/cobra"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/examples/order"
	"github.com/pawlhq/pawl/examples/order/provider"
	"github.com/pawlhq/pawl/tracing/opentelemetry"
	"github.com/pawlhq/pawl/tracing/opentelemetry/sampler"
	"github.com/pawlhq/pawl/workflow"
)

// A service with a command of its own.
func ExampleCommandLine() {
	orders := order.Workflow(&provider.Client{URL: os.Getenv("PAYMENTS")})
	root := pawl.CommandLine(orders)
	root.AddCommand(&cobra.Command{
		Use: "import <file>", Short: "Import last year's orders", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			config := pawl.ConfigOf(c, orders) // of --database and --schema
			_, err := fmt.Fprintln(c.OutOrStdout(), "importing", args[0], "into the schema", config.Schema)
			return err
		},
	})
	root.SetArgs([]string{"import", "orders.csv"})
	fmt.Println("exit code", pawl.Execute(root))

	// Output:
	// importing orders.csv into the schema pawl
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
