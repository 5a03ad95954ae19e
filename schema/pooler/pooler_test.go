package pooler

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/internal/testkit/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var prepares = map[pgx.QueryExecMode]bool{
	pgx.QueryExecModeCacheStatement: true, pgx.QueryExecModeDescribeExec: true,
	pgx.QueryExecModeCacheDescribe: false, pgx.QueryExecModeExec: false, pgx.QueryExecModeSimpleProtocol: false,
}

func check(t *testing.T, url string, mode pgx.QueryExecMode) error {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	config.ConnConfig.DefaultQueryExecMode = mode
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	return Check(t.Context(), pool)
}

// Connecting through a pooler without the setting fails every time.
func TestUnexpectedPoolerIsDetected(t *testing.T) {
	url := pgtest.BouncerURL(t)
	for mode, found := range prepares {
		for range 5 {
			if err := check(t, url, mode); errors.Is(err, ErrPrepares) != found || !found && err != nil {
				t.Errorf("%v: %v", mode, err)
			}
		}
	}
}

func TestWithoutPoolerAllModesWork(t *testing.T) {
	url := pgtest.DirectURL(t)
	for mode := range prepares {
		if err := check(t, url, mode); err != nil {
			t.Errorf("%v: %v", mode, err)
		}
	}
}
