// Package tables gives each test a database with Pawl's tables, by way of package pgtest, which knows nothing of them.
package tables

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/internal/pgtest"
	"github.com/pawlhq/pawl/schema"
)

// Main is [pgtest.Main] for tests whose databases begin with the tables, empty, in the default schema.
func Main(m *testing.M) {
	pgtest.MainWith(m, func(ctx context.Context, pool *pgxpool.Pool) error {
		_, err := schema.Migrate(ctx, pool, schema.Default)
		return err
	})
}
