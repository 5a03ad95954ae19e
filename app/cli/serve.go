package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/app/cli/flags"
	"github.com/pawlhq/pawl/app/sdnotify"
	"github.com/pawlhq/pawl/app/service"
	"github.com/pawlhq/pawl/app/usage"
	"github.com/pawlhq/pawl/console"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// serveFlags are the flags of serve.
type serveFlags struct {
	config                                              service.Config
	receivers, private, fromNow, inboxes, kept, proxies []string
	auth                                                string
}

func serveCommand(workflows []workflow.Source) *cobra.Command {
	var f serveFlags
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve the workflows over HTTP and WebSocket",
		Long: `Serve the workflows over HTTP and WebSocket.

The command migrates the database first. SIGINT or SIGTERM shuts down gracefully:
streams are closed, open requests are answered, and longer work is released for other
nodes. A second signal ends the process at once; other nodes take over when its leases
expire.

--sink NAME=URL delivers all events to a receiver, from one node at a time. The name
identifies the sink and must not change. The URL is one of
  https://host/path    a webhook (Standard Webhooks; http:// is without TLS), with the
                       secret in PAWL_SINK_NAME_SECRET
  nats://host:4222/?stream=PAWL&subject=pawl.{tenant}.{type}
                       a stream of NATS JetStream (tls:// is with TLS). A stream that
                       Pawl creates drops duplicates within 20 minutes; after a longer
                       outage it may have duplicates with the same Nats-Msg-Id
  file:///path         a file with a CloudEvent per line; file:- is standard output
A new sink starts with the oldest event; with --sink-from-now NAME it starts with the
next one.

--inbox CONSUMER accepts signed webhooks (Standard Webhooks), with the secret in
PAWL_INBOX_CONSUMER_SECRET. A secret is "whsec_" and the base64 of 24 to 64 bytes, such
as "whsec_$(openssl rand -base64 32)". During a rotation there are two, separated by a
space, the newest first. In the names of the variables, letters are upper case and
other characters than letters and digits are "_".`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			config, err := f.read(c, workflows)
			if err != nil {
				return err
			}
			return serve(c.Context(), config)
		},
	}
	f.add(c)
	addNetwork(c, &f.config.Network)
	c.Flags().StringSliceVar(&f.proxies, "proxy", nil,
		"networks of trusted proxies, such as 10.1.2.0/24, which set Forwarded, or X-Forwarded-For, -Host and -Proto")
	return c
}

func (f *serveFlags) add(c *cobra.Command) {
	own, config := c.Flags(), &f.config
	own.StringVar(&config.Address, "address", service.DefaultAddress,
		"host and port to listen on; other machines reach it only with --auth, and TLS or --plain-http")
	own.StringVar(&config.Listen, "listen", "",
		"direct connection string for notifications if --database is a pooler; without it nodes behind a pooler poll")
	own.IntVar(&config.InFlight.Workers, "workers", 100,
		"maximum number of concurrent activities, timers and scheduled commands; 0 leaves them to other nodes")
	own.DurationVar(&config.InFlight.Lease, "lease", 30*time.Second,
		"time after a crash of this node until other nodes take over its work")
	flags.KeepEvents(c, &config.Retention.Outbox,
		"retention period of events, at least 24h; events that a sink has not received are kept longer")
	own.StringArrayVar(&f.receivers, "sink", nil, "deliver events to a receiver, as NAME=URL; may be given several times")
	own.StringVar(&config.Source, "source", transitions.DefaultSource,
		"prefix of the source of events; set it permanently if several installations feed one receiver or stream")
	own.StringSliceVar(&f.fromNow, "sink-from-now", nil,
		"new sinks that start with the next event; existing ones continue at their position")
	own.StringSliceVar(&f.private, "sink-private", nil,
		"private networks that webhooks may call, such as 10.0.0.0/8")
	own.Float64Var(&config.Rate, "rate", 0, "maximum number of commands per second from each tenant on this node; 0 means unlimited")
	own.Float64Var(&config.CredentialRate, "credential-rate", 0,
		"maximum number of commands per second from each actor of a tenant on this node, with all its credentials; 0 means unlimited")
	own.BoolVar(&config.AccessLog, "access-log", false, "log each request when it is answered")
	own.BoolVar(&config.AccessLogSkipsHealth, "access-log-skip-health", false, "leave /healthz, /readyz and /metrics out of the access log")
	own.StringVar(&config.Console, "console", console.DefaultPath, "path of the console, the pages for operators; \"off\" disables it")
	own.StringVar(&f.auth, "auth", "",
		"file with the accepted credentials, see docs/access.md; without it every caller on this machine is trusted")
	own.StringArrayVar(&f.inboxes, "inbox", nil,
		"accept signed webhooks for this consumer, CONSUMER or CONSUMER=TENANT, at POST /v1/inbox/CONSUMER; "+
			"its secrets are in PAWL_INBOX_CONSUMER_SECRET; may be given several times")
	own.StringArrayVar(&f.kept, "inbox-keep", nil,
		"store the messages of a consumer as received, for operators to read: CONSUMER=DURATION, such as payments=720h; "+
			"may be given several times")
}

// read returns the configuration of the flags.
func (f *serveFlags) read(c *cobra.Command, workflows []workflow.Source) (config service.Config, err error) {
	config = f.config
	all := ConfigOf(c, workflows...)
	config.Workflows, config.Database, config.Schema, config.Log = all.Workflows, all.Database, all.Schema, logOf(c, slog.LevelInfo)
	if err := transitions.CheckSource(config.Source); err != nil {
		return config, usage.Errorf("--source: %v", err)
	}
	if config.InFlight, err = inFlight(config.InFlight); err != nil {
		return config, err
	}
	if config.Rate < 0 {
		return config, usage.Errorf("--rate is negative")
	}
	if config.CredentialRate < 0 {
		return config, usage.Errorf("--credential-rate is negative")
	}
	if config.Auth, err = authOf(f.auth); err != nil {
		return config, err
	}
	if config.Network.Proxies, err = networksOf("--proxy", f.proxies); err != nil {
		return config, err
	}
	if config.Inbox, err = inboxOf(f.inboxes); err != nil {
		return config, err
	}
	if err := keptFor(config.Inbox, f.kept); err != nil {
		return config, err
	}
	if config.Sinks, err = sinks(f.receivers, f.private, os.Getenv, c.OutOrStdout(), config.Log); err != nil {
		return config, err
	}
	return config, beginNow(config.Sinks, f.fromNow)
}

// inFlight validates the flags of workers and leases.
func inFlight(c engine.InFlightConfig) (engine.InFlightConfig, error) {
	switch {
	case c.Workers < 0:
		return c, usage.Errorf("--workers is negative")
	case c.Lease < time.Second:
		return c, usage.Errorf("--lease %s is less than a second: a node that is only slow would lose its work", c.Lease)
	case c.Workers == 0:
		c.Workers = -1
	}
	return c, nil
}

// serve runs a service until ctx ends.
func serve(ctx context.Context, c service.Config) error {
	// Unless GOMEMLIMIT is set. Without a cgroup limit the process has no limit.
	if _, err := memlimit.Set(memlimit.WithProvider(memlimit.FromCgroup), memlimit.WithRatio(0.9)); err != nil {
		c.Log.Debug("no memory limit is known", "error", err)
	}
	systemd := sdnotify.FromEnvironment(c.Log)
	defer systemd.Close()
	s, err := service.Start(ctx, c)
	if err != nil {
		return err
	}
	c.Log.Info("serving", "url", s.URL(), "workflows", workflowList(s.Engine()))
	systemd.Ready("serving " + s.URL())
	failed := s.Wait(ctx)
	c.Log.Info("stopping")
	systemd.Stopping()
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), service.StopTimeout)
	defer cancel()
	return errors.Join(failed, s.Stop(stopping))
}

func workflowList(e *engine.Engine) string {
	var names []string
	for _, newest := range e.Read().Workflows() {
		name := newest.Name
		for _, w := range e.Read().Versions(newest.Name) {
			name += fmt.Sprintf(" v%d", w.Version)
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}
