package commit

import (
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/internal/kernel/clock"
	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/schema"
	"github.com/pawlhq/pawl/schema/pooler"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// testPipeline is a pipeline on the pool's database that is not started.
func testPipeline(pool *pgxpool.Pool, ws ...*workflow.Workflow) *Pipeline {
	return New(testConfig(pool, ws...))
}

func testConfig(pool *pgxpool.Pool, ws ...*workflow.Workflow) Config {
	return Config{
		Connect: func(ctx context.Context, name string) (*pgx.Conn, error) {
			c := pool.Config().ConnConfig.Copy()
			c.RuntimeParams["application_name"] = name
			return pgx.ConnectConfig(ctx, c)
		},
		Pooled: pooler.Expected(pool.Config().ConnConfig),
		Schema: schema.Default, Statements: NewStatements(schema.For(schema.Default)),
		Definitions: known(func(name string, version int) *workflow.Workflow {
			for _, w := range ws {
				if w.Name == name && w.Version == version {
					return w
				}
			}
			return nil
		}),
		Clock:     clock.New(nil),
		Committed: func(string, int64, func() []transitions.Event) {},
		Log:       slog.New(slog.DiscardHandler),
		Limits: Limits{Committers: 2, RetryWorkers: 2, QueueSize: 64, QueueBytes: 1 << 20, GroupSize: 16, GroupBytes: 1 << 20,
			LockWait: time.Minute, Outage: time.Minute, HookTimeout: time.Minute},
	}
}

// known finds the workflows of a test, whose answers are replayed for an hour.
type known func(name string, version int) *workflow.Workflow

func (k known) Find(name string, version int) *workflow.Workflow { return k(name, version) }
func (known) Horizons(string) workflow.Horizons                  { return workflow.Horizons{}.Resolve(time.Hour) }

// transitionsOf is the command again, for a tenant and with a text.
func transitionsOf(p *decide.Prepared, tenant, text string) transitions.Command {
	c := p.Command
	c.Tenant, c.Scope, c.Payload = tenant, "", []byte(`{"text":"`+text+`"}`)
	if p.Creates {
		c.Instance = uuid.Nil
	}
	return c
}
