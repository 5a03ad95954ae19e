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

The database is migrated first. SIGINT or SIGTERM stops in order: no new
requests, every stream closed with the word to resume elsewhere, what is under
way answered, and what takes longer given back for other nodes. A second signal
ends the process at once; other nodes then take over when its leases run out.

--sink NAME=URL delivers every event to a receiver; of all nodes that have a sink
one delivers to it. The name is the sink's for good. The URL is one of
  https://host/path    a webhook (Standard Webhooks; http:// is without TLS).
                       PAWL_SINK_NAME_SECRET has its secret
  nats://host:4222/?stream=PAWL&subject=pawl.{tenant}.{type}
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
		"networks of proxies that are believed about who asks, such as 10.1.2.0/24: Forwarded, or X-Forwarded-For, -Host and -Proto")
	return c
}

func (f *serveFlags) add(c *cobra.Command) {
	own, config := c.Flags(), &f.config
	own.StringVar(&config.Address, "address", service.DefaultAddress,
		"host and port to listen on; other machines reach it only with --auth, and TLS or --plain-http")
	own.StringVar(&config.Listen, "listen", "",
		"connection string past a pooler, to hear other nodes' notifications; without it nodes behind one poll")
	own.IntVar(&config.InFlight.Workers, "workers", 100,
		"how many activities, timers and scheduled commands to work on at once; 0 leaves them to other nodes")
	own.DurationVar(&config.InFlight.Lease, "lease", 30*time.Second,
		"how long after the death of this node another one takes over what it was working on")
	flags.KeepEvents(c, &config.Retention.Outbox,
		"how old an event is at least when it is removed from the log, at least 24h; what a sink has not got stays for longer")
	own.StringArrayVar(&f.receivers, "sink", nil, "deliver every event to a receiver, as NAME=URL; may be given several times")
	own.StringVar(&config.Source, "source", transitions.DefaultSource,
		"prefix of the source of events; set it once, and do not change it, if several installations feed one receiver or stream")
	own.StringSliceVar(&f.fromNow, "sink-from-now", nil,
		"new sinks that start with the next event; existing ones continue at their position")
	own.StringSliceVar(&f.private, "sink-private", nil,
		"networks that webhooks may call although they are not public, such as 10.0.0.0/8")
	own.Float64Var(&config.Rate, "rate", 0, "maximum number of commands per second from each tenant on this node; 0 means unlimited")
	own.Float64Var(&config.CredentialRate, "credential-rate", 0,
		"maximum number of commands per second from each actor of a tenant on this node, with all its credentials; 0 means unlimited")
	own.BoolVar(&config.AccessLog, "access-log", false, "log each request when it is answered")
	own.BoolVar(&config.AccessLogSkipsHealth, "access-log-skip-health", false, "leave /healthz, /readyz and /metrics out of the access log")
	own.StringVar(&config.Console, "console", console.DefaultPath, "path of the console, the pages for operators; \"off\" disables it")
	own.StringVar(&f.auth, "auth", "",
		"file with the accepted credentials, see docs/access.md; without it every caller on this machine is trusted")
	own.StringArrayVar(&f.inboxes, "inbox", nil,
		"take signed webhooks for this consumer, CONSUMER or CONSUMER=TENANT, at POST /v1/inbox/CONSUMER; "+
			"its secrets are in PAWL_INBOX_CONSUMER_SECRET; may be given several times")
	own.StringArrayVar(&f.kept, "inbox-keep", nil,
		"store the messages of a consumer as received, for operators to read: CONSUMER=DURATION, such as payments=720h; "+
			"may be given several times")
}

// read is the configuration that the flags ask for.
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

// inFlight is how the engine has what the flags say.
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
