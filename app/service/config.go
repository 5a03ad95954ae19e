package service

import (
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/pawlhq/pawl/app/usage"
	"github.com/pawlhq/pawl/console"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inbox"
	"github.com/pawlhq/pawl/inbox/signature"
	"github.com/pawlhq/pawl/outbox/relay"
	"github.com/pawlhq/pawl/schema"
	"github.com/pawlhq/pawl/tracing"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// DefaultAddress is the default of Config.Address.
const DefaultAddress = "127.0.0.1:8080"

// Config configures a Service. Only Workflows is required.
type Config struct {
	// Workflows are the definitions to run.
	Workflows []workflow.Source

	// Database is the connection string of PostgreSQL, as a URL or as keywords and values. "" starts a private server in a folder of the
	// user. Programs of the user share the server; the last one stops it, and its data stays.
	Database string

	// Listen is the connection string for notifications if Database is a pooler in transaction mode; see [engine.Config]. Defaults to
	// Database, or to polling behind a pooler.
	Listen string

	// Schema is the PostgreSQL schema of the tables. Defaults to "pawl".
	Schema string

	// Address is the host and port to listen on. Port 0 selects a free one. Without Auth it must be a loopback address. Defaults to
	// [DefaultAddress].
	Address string

	// InFlight configures the execution of activities, timers and scheduled commands.
	InFlight engine.InFlightConfig

	// Retention configures the retention period of events, and whether this node removes expired data.
	Retention engine.RetentionConfig

	// Source is the prefix of the source of events, to be set if several installations feed one receiver; see [engine.Config]. Defaults to
	// "/pawl".
	Source string

	// Sinks are the receivers of the events. Stop closes them.
	Sinks []relay.Sink

	// Network configures the listener and its limits. The zero value suits a loopback address.
	Network Network

	// Rate is the number of commands per second that this node accepts from each tenant over HTTP; more are refused with RateLimited. Zero
	// means no limit.
	Rate float64

	// CredentialRate is the same for each actor of a tenant, whichever credentials it uses. Zero means no limit.
	CredentialRate float64

	// AccessLog logs each request at level Info when it is answered, else at Debug.
	AccessLog bool
	// AccessLogSkipsHealth logs requests of /healthz, /readyz and /metrics at level Debug, whatever AccessLog is.
	AccessLogSkipsHealth bool

	// Inbox accepts signed webhooks for these consumers, at POST /v1/inbox/{consumer}.
	Inbox map[string]InboxConsumer

	// Sources are other sources of messages, such as streams of a broker.
	Sources []inbox.Source

	// Routes returns additional routes, by pattern as in [http.ServeMux]; see [api.Config]. It is called once, when the engine runs and before
	// the first request. These routes are not authenticated. Without Auth only loopback hosts are served, as for Pawl's own. Start refuses
	// routes that conflict with those.
	Routes func(s *Service) map[string]http.Handler

	// Console is the path of the pages for operators. Defaults to "/console"; [NoConsole] disables them. Users have the rights of their
	// credentials.
	Console string

	// Auth configures the accepted credentials. With the zero value every caller on this machine is trusted; see [api.Loopback].
	Auth Auth

	// Tracer receives the steps of requests, commands, activities and deliveries; package tracing/opentelemetry has an implementation. Nil
	// disables tracing.
	Tracer tracing.Tracer

	// Log defaults to slog.Default().
	Log *slog.Logger
}

func (c Config) withDefaults() (Config, error) {
	if c.Address == "" {
		c.Address = DefaultAddress
	}
	if c.Schema == "" {
		c.Schema = schema.Default
	}
	if c.Console == "" {
		c.Console = console.DefaultPath
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if err := checkAddress(c.Address, c.Network, c.authenticated()); err != nil {
		return c, err
	}
	if err := c.Network.check(); err != nil {
		return c, err
	}
	if err := c.Auth.check(); err != nil {
		return c, err
	}
	if err := c.checkConsole(); err != nil {
		return c, err
	}
	if err := schema.CheckName(c.Schema); err != nil {
		return c, &usage.Error{Err: err}
	}
	// Errors of the program are reported before a database is started.
	var mistakes []error
	var built []*workflow.Workflow
	for _, source := range c.Workflows {
		w, err := source.Build()
		if err != nil {
			mistakes = append(mistakes, err)
			continue
		}
		built = append(built, w)
	}
	if len(mistakes) == 0 {
		mistakes = append(mistakes, c.checkInbox(built))
	}
	return c, errors.Join(mistakes...)
}

// InboxConsumer is a consumer of signed webhooks (Standard Webhooks).
type InboxConsumer struct {
	// Tenant is the tenant of the messages. Defaults to "default".
	Tenant string
	// Secrets are the accepted secrets: one, or two during a rotation.
	Secrets []signature.Secret
	// Keep is the time for which messages are stored as received, with headers; see [api.Consumer]. Zero stores none.
	Keep time.Duration
}

// checkInbox rejects consumers without a workflow or valid secrets.
func (c Config) checkInbox(workflows []*workflow.Workflow) error {
	received := map[string]bool{}
	for _, w := range workflows {
		for _, s := range w.Steps {
			for _, r := range s.Receives {
				received[r.Consumer] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Inbox)) {
		consumer := c.Inbox[name]
		m := transitions.Message{Tenant: consumer.Tenant, Consumer: name, ID: "any", Keep: consumer.Keep}
		switch err := m.Check(); {
		case err != nil:
			return usage.Errorf("inbox %q: %w", name, err)
		case len(consumer.Secrets) == 0 || slices.ContainsFunc(consumer.Secrets, signature.Secret.IsZero):
			return usage.Errorf("inbox %q has no secret: every sender would be accepted", name)
		case !received[name]:
			return usage.Errorf("inbox %q: no transition of any workflow receives from it", name)
		}
	}
	return nil
}
