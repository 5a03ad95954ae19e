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
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve the workflows over HTTP and WebSocket",
		Long: `Serve the workflows over HTTP and WebSocket.

The database is migrated first. SIGINT or SIGTERM stops in order: no new
requests, every stream closed with the word to resume elsewhere, what is under
way answered. A second signal ends the process at once.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			config := ConfigOf(c, workflows...)
			config.Address = address
			config.Log = slog.New(slog.NewTextHandler(c.ErrOrStderr(), nil))
			return serve(c.Context(), config)
		},
	}
	c.Flags().StringVar(&address, "address", DefaultAddress, "loopback host and port to listen on")
	return c
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
