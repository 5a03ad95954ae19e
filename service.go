package pawl

import (
	"context"

	"github.com/pawlhq/pawl/app/service"
)

// DefaultAddress is where a Service listens unless its Config says otherwise.
const DefaultAddress = service.DefaultAddress

type (
	// Config is what a Service needs. Only its Workflows are required;
	// [service.Config] describes all of it.
	Config = service.Config

	// InboxConsumer takes webhooks that are signed as Standard Webhooks says.
	InboxConsumer = service.InboxConsumer

	// Network says how a Service is reached: TLS, proxies, pages of other origins, and how
	// much of it everybody may take.
	Network = service.Network

	// Service is a running engine with its HTTP interface and its database. It is
	// safe for concurrent use. Engine is the engine behind the interface, Pool the pool
	// of connections, for tables of the program's own, and URL the address to send
	// requests to. Wait waits until a context ends or the service fails, and Stop stops
	// in order.
	Service = service.Service
)

// Start connects to the database, migrates it, and serves. ctx bounds only the
// start. Call Stop when done.
//
// Errors: a *UsageError for an address, a network, a schema name or an inbox that cannot be;
// the mistakes of the workflows; a route that cannot be; those of package schema,
// [engine.New] and its Start.
func Start(ctx context.Context, c Config) (*Service, error) { return service.Start(ctx, c) }
