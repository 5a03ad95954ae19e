package cli

import (
	"context"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/cli/ops"
	"github.com/pawlhq/pawl/internal/service"
	"github.com/pawlhq/pawl/workflow"
)

func opsCommand(workflows []workflow.Source) *cobra.Command {
	return ops.Command(func(c *cobra.Command, do func(ctx context.Context, e *engine.Engine) error, change ...func(*engine.Config)) error {
		config := ConfigOf(c, workflows...)
		config.Log = logOf(c, slog.LevelWarn) // how it connects is nothing to tell
		return service.WithEngine(c.Context(), config, do, change...)
	})
}
