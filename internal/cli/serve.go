package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/service"
	"github.com/pawlhq/pawl/internal/usage"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// How long events are kept: unless somebody says it, and at least.
const (
	defaultKeepEvents = 30 * 24 * time.Hour
	minKeepEvents     = 24 * time.Hour
)

func serveCommand(workflows []workflow.Source) *cobra.Command {
	var address, listen, source string
	var workers int
	var lease, keepEvents time.Duration
	var rate float64
	var receivers, private, fromNow []string
	var consumers []string
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve the workflows over HTTP and WebSocket",
		Long: `Serve the workflows over HTTP and WebSocket.

The database is migrated first. SIGINT or SIGTERM stops in order: no new
requests, every stream closed with the word to resume elsewhere, what is under
way answered, and what takes longer given back for other nodes. A second signal
ends the process at once; other nodes then take over when its leases run out.

--sink NAME=URL delivers every event to a receiver; of all nodes that have a sink
one delivers to it. The name is the sink's for good. The URL is one of
  https://host/path    a webhook (Standard Webhooks; http:// is without TLS).
                       PAWL_SINK_NAME_SECRET has its secret
  nats://host:4222/?stream=PAWL&subject=pawl.{tenant}.{workflow}.{type}
                       a stream of NATS JetStream (tls:// is with TLS). It drops
                       what is sent twice within 20 minutes if Pawl has made it;
                       after a longer outage some events may be in it twice, with
                       one Nats-Msg-Id
  file:///path         a file, one CloudEvent to a line; file:- is the standard output
A sink that the database does not know yet gets the oldest events that are there
first; with --sink-from-now NAME it begins with what happens from then on.

--inbox CONSUMER takes webhooks that are signed as Standard Webhooks says.
PAWL_INBOX_CONSUMER_SECRET has the secret. Secrets are "whsec_" and the base64 of
24 to 64 bytes, such as "whsec_$(openssl rand -base64 32)". Where one is being
replaced there are two with a blank between, the newest first. In the names of
the variables, what is no letter or digit is "_", and letters are capital.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			config := ConfigOf(c, workflows...)
			config.Address, config.Listen, config.Source = address, listen, source
			config.Log = logOf(c, slog.LevelInfo)
			var err error
			if err = transitions.CheckSource(source); err != nil {
				return usage.Errorf("--source: %v", err)
			}
			if config.InFlight, err = inFlight(workers, lease); err != nil {
				return err
			}
			if keepEvents < minKeepEvents {
				return usage.Errorf("--keep-events %s is less than a day: who was away overnight would find them gone", keepEvents)
			}
			config.Retention.Outbox = keepEvents
			if rate < 0 {
				return usage.Errorf("--rate is negative")
			}
			config.Rate = rate
			if config.Inbox, err = inboxOf(consumers); err != nil {
				return err
			}
			if config.Sinks, err = sinks(receivers, private, os.Getenv, c.OutOrStdout(), config.Log); err != nil {
				return err
			}
			if err = beginNow(config.Sinks, fromNow); err != nil {
				return err
			}
			return serve(c.Context(), config)
		},
	}
	c.Flags().StringVar(&address, "address", service.DefaultAddress, "loopback host and port to listen on")
	c.Flags().StringVar(&listen, "listen", "", "connection string past a pooler, to hear other nodes' notifications; without it nodes behind one poll")
	c.Flags().IntVar(&workers, "workers", 100, "how many activities, timers and scheduled commands to work on at once; 0 leaves them to other nodes")
	c.Flags().DurationVar(&lease, "lease", 30*time.Second, "how long after the death of this node another one takes over what it was working on")
	c.Flags().DurationVar(&keepEvents, "keep-events", defaultKeepEvents, "how old an event is at least when it is removed from the log, at least 24h; what a sink has not got stays for longer")
	c.Flags().StringArrayVar(&receivers, "sink", nil, "deliver every event to a receiver, as NAME=URL; may be given several times")
	c.Flags().StringVar(&source, "source", transitions.DefaultSource, "what the source of the events begins with; to be set, for good, where several installations feed one receiver or stream")
	c.Flags().StringSliceVar(&fromNow, "sink-from-now", nil, "names of sinks that begin with what happens from now on, if they are new; others go on where they are")
	c.Flags().StringSliceVar(&private, "sink-private", nil, "networks that webhooks may call although they are not public, such as 10.0.0.0/8")
	c.Flags().Float64Var(&rate, "rate", 0, "how many commands a second this node takes from each tenant; 0 is no limit")
	c.Flags().StringArrayVar(&consumers, "inbox", nil, "take signed webhooks for this consumer, CONSUMER or CONSUMER=TENANT, at POST /v1/inbox/CONSUMER; its secrets are in PAWL_INBOX_CONSUMER_SECRET; may be given several times")
	return c
}

// inFlight is what the flags ask for.
func inFlight(workers int, lease time.Duration) (engine.InFlightConfig, error) {
	switch {
	case workers < 0:
		return engine.InFlightConfig{}, usage.Errorf("--workers is negative")
	case lease < time.Second:
		return engine.InFlightConfig{}, usage.Errorf("--lease %s is less than a second: a node that is only slow would lose its work", lease)
	case workers == 0:
		workers = -1 // as the engine has it
	}
	return engine.InFlightConfig{Workers: workers, Lease: lease}, nil
}

// serve runs a service until ctx ends.
func serve(ctx context.Context, c service.Config) error {
	s, err := service.Start(ctx, c)
	if err != nil {
		return err
	}
	c.Log.Info("serving", "url", s.URL(), "workflows", workflowList(s.Engine()))
	failed := s.Wait(ctx)
	c.Log.Info("stopping")
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), service.StopTimeout)
	defer cancel()
	return errors.Join(failed, s.Stop(stopping))
}

func workflowList(e *engine.Engine) string {
	var names []string
	for _, newest := range e.Workflows() {
		name := newest.Name
		for _, w := range e.Versions(newest.Name) {
			name += fmt.Sprintf(" v%d", w.Version)
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}
