package pawl

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/workflow"
)

// stopTimeout bounds how long requests may take to end after a signal.
const stopTimeout = 20 * time.Second

func serveCommand(workflows []workflow.Source) *cobra.Command {
	var address string
	var workers int
	var lease time.Duration
	var rate float64
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve the workflows over HTTP and WebSocket",
		Long: `Serve the workflows over HTTP and WebSocket.

The database is migrated first. SIGINT or SIGTERM stops in order: no new
requests, every stream closed with the word to resume elsewhere, what is under
way answered, and what takes longer given back for other nodes. A second signal
ends the process at once; other nodes then take over when its leases run out.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			config := ConfigOf(c, workflows...)
			config.Address = address
			var err error
			if config.InFlight, err = inFlight(workers, lease); err != nil {
				return err
			}
			if rate < 0 {
				return usagef("--rate is negative")
			}
			config.Rate = rate
			config.Log = slog.New(slog.NewTextHandler(c.ErrOrStderr(), nil))
			return serve(c.Context(), config)
		},
	}
	c.Flags().StringVar(&address, "address", DefaultAddress, "loopback host and port to listen on")
	c.Flags().IntVar(&workers, "workers", 100, "how many activities, timers and scheduled commands to work on at once; 0 leaves them to other nodes")
	c.Flags().DurationVar(&lease, "lease", 30*time.Second, "how long after the death of this node another one takes over what it was working on")
	c.Flags().Float64Var(&rate, "rate", 0, "how many commands a second this node takes from each tenant; 0 is no limit")
	return c
}

// inFlight is what the flags ask for.
func inFlight(workers int, lease time.Duration) (engine.InFlightConfig, error) {
	switch {
	case workers < 0:
		return engine.InFlightConfig{}, usagef("--workers is negative")
	case lease < time.Second:
		return engine.InFlightConfig{}, usagef("--lease %s is less than a second: a node that is only slow would lose its work", lease)
	case workers == 0:
		workers = -1 // as the engine has it
	}
	return engine.InFlightConfig{Workers: workers, Lease: lease}, nil
}

// serve runs a service until ctx ends.
func serve(ctx context.Context, c Config) error {
	s, err := Start(ctx, c)
	if err != nil {
		return err
	}
	c.Log.Info("serving", "url", s.URL(), "workflows", workflowList(s.Engine()))
	failed := s.Wait(ctx)
	c.Log.Info("stopping")
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	return errors.Join(failed, s.Stop(stopping))
}

func workflowList(e *engine.Engine) string {
	var names []string
	for _, w := range e.Workflows() {
		names = append(names, fmt.Sprintf("%s v%d", w.Name, w.Version))
	}
	return strings.Join(names, ", ")
}
