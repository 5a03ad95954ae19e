package pgtest

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestQueriesAreNotedAloneAndInBatches(t *testing.T) {
	t.Parallel()
	var asked Queries
	config, err := pgxpool.ParseConfig(URL(t))
	require.NoError(t, err)
	config.ConnConfig.Tracer = &asked
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	defer pool.Close()
	_, err = pool.Exec(t.Context(), "SELECT 1")
	require.NoError(t, err)
	batch := &pgx.Batch{}
	batch.Queue("SELECT 2")
	batch.Queue("SELECT 3")
	require.NoError(t, pool.SendBatch(t.Context(), batch).Close())
	assert.Truef(t, asked.Count("") == 3 && asked.Count("SELECT") == 3 && asked.Count("3") == 1 && asked.List()[2] == "SELECT 3",
		"noted %q", asked.List())
}
