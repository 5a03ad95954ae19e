package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/localpg"
)

// withDatabase calls do with the connection string of the database that the
// flags name, or else with that of a private server, which it starts.
func withDatabase(c *cobra.Command, options localpg.Options, do func(ctx context.Context, url string) error) error {
	if url := pawl.ConfigOf(c).Database; url != "" {
		return do(c.Context(), url)
	}
	options.Log = func(format string, args ...any) { c.PrintErrf(format+"\n", args...) }
	server, err := localpg.Start(c.Context(), options)
	if err != nil {
		return fmt.Errorf("start a private PostgreSQL: %w", err)
	}
	return errors.Join(do(c.Context(), server.URL()), server.Stop())
}
