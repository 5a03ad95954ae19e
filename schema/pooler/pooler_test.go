package pooler

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
	require.NoError(t, err)
	config.ConnConfig.DefaultQueryExecMode = mode
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	defer pool.Close()
	return Check(t.Context(), pool)
}

// Connecting through a pooler without the setting fails every time.
func TestUnexpectedPoolerIsDetected(t *testing.T) {
	url := pgtest.BouncerURL(t)
	for mode, found := range prepares {
		for range 5 {
			err := check(t, url, mode)
			assert.Truef(t, errors.Is(err, ErrPrepares) == found && (found || err == nil), "%v: %v", mode, err)
		}
	}
}

func TestWithoutPoolerAllModesWork(t *testing.T) {
	url := pgtest.DirectURL(t)
	for mode := range prepares {
		assert.NoError(t, check(t, url, mode), mode)
	}
}
