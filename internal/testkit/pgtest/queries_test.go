package pgtest

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

func TestQueriesAreNotedAloneAndInBatches(t *testing.T) {
	t.Parallel()
	var asked Queries
	config, err := pgxpool.ParseConfig(URL(t))
	if err != nil {
		t.Fatal(err)
	}
	config.ConnConfig.Tracer = &asked
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if _, err := pool.Exec(t.Context(), "SELECT 1"); err != nil {
		t.Fatal(err)
	}
	batch := &pgx.Batch{}
	batch.Queue("SELECT 2")
	batch.Queue("SELECT 3")
	if err := pool.SendBatch(t.Context(), batch).Close(); err != nil {
		t.Fatal(err)
	}
	if asked.Count("") != 3 || asked.Count("SELECT") != 3 || asked.Count("3") != 1 || asked.List()[2] != "SELECT 3" {
		t.Errorf("noted %q", asked.List())
	}
}
