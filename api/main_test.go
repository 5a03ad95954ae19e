package api_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/internal/pgtest"
	"github.com/pawlhq/pawl/schema"
)

func TestMain(m *testing.M) { pgtest.MainWith(m, prepare) }

// prepare makes the tables that each test's database begins with.
func prepare(ctx context.Context, pool *pgxpool.Pool) error {
	_, err := schema.Migrate(ctx, pool, schema.Default)
	return err
}
