package pawl

import (
	"context"
	"errors"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/ops"
	"github.com/pawlhq/pawl/schema"
	"github.com/pawlhq/pawl/workflow"
)

func opsCommand(workflows []workflow.Source) *cobra.Command {
	return ops.Command(func(c *cobra.Command, do func(ctx context.Context, e *engine.Engine) error, change ...func(*engine.Config)) error {
		config := ConfigOf(c, workflows...)
		config.Log = slog.New(slog.NewTextHandler(c.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelWarn})) // how it connects is nothing to tell
		return withEngine(c.Context(), config, do, change...)
	})
}

// withEngine does something with an engine that is not started. Should it be, it
// works on nothing that waits.
func withEngine(ctx context.Context, c Config, do func(ctx context.Context, e *engine.Engine) error, change ...func(*engine.Config)) (err error) {
	if c, err = c.withDefaults(); err != nil {
		return err
	}
	d, err := openDatabase(ctx, c.Database, c.Log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	if err := schema.Check(ctx, d.pool, c.Schema); err != nil {
		if d.local != nil {
			err = ofPrivate(err)
		}
		return err
	}
	config := engine.Config{Pool: d.pool, Workflows: c.Workflows, Schema: c.Schema, Log: c.Log, Transient: true,
		InFlight: engine.InFlightConfig{Workers: -1}, Retention: engine.RetentionConfig{Off: true}}
	for _, f := range change {
		f(&config)
	}
	e, err := engine.New(config)
	if err != nil {
		return err
	}
	defer func() {
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		e.Stop(stopping)
	}()
	return do(ctx, e)
}
