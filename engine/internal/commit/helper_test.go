package commit

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/internal/pooler"
	"github.com/pawlhq/pawl/workflow"
)

// testPipeline is a pipeline on the pool's database that nobody has started.
func testPipeline(pool *pgxpool.Pool, ws ...*workflow.Workflow) *Pipeline {
	return New(Config{
		Connect: func(ctx context.Context, name string) (*pgx.Conn, error) {
			c := pool.Config().ConnConfig.Copy()
			c.RuntimeParams["application_name"] = name
			return pgx.ConnectConfig(ctx, c)
		},
		Pooled: pooler.Expected(pool.Config().ConnConfig),
		Schema: "pawl", Statements: NewStatements(func(sql string) string { return sql }),
		Definition: func(name string, version int) *workflow.Workflow {
			for _, w := range ws {
				if w.Name == name && w.Version == version {
					return w
				}
			}
			return nil
		},
		Committed:  func(string, int64) {},
		Log:        slog.New(slog.DiscardHandler),
		Committers: 2, Lanes: 2, QueueSize: 64, QueueBytes: 1 << 20, GroupSize: 16, GroupBytes: 1 << 20,
		LockWait: time.Minute, Outage: time.Minute, HookTimeout: time.Minute, Horizons: func(string) workflow.Horizons { return workflow.Horizons{}.Resolve(time.Hour) },
	})
}
