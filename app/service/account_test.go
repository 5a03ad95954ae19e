package service

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/examples/order"
	"github.com/pawlhq/pawl/examples/order/provider"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/schema"
	"github.com/pawlhq/pawl/workflow"
)

// The owner of the tables migrates; the nodes connect as a role that owns none.
func TestService_RoleWithoutTables(t *testing.T) {
	t.Parallel()
	admin := pgtest.DirectTo(t, pgtest.EmptyPool(t))
	owner, asOwner := pgtest.Role(t, admin)
	do(t, admin, fmt.Sprintf("GRANT CREATE ON DATABASE %s TO %s", admin.Config().ConnConfig.Database, owner))
	pool, err := pgxpool.New(t.Context(), asOwner)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	_, err = schema.Migrate(t.Context(), pool, schema.Default)
	require.NoError(t, err)
	role, as := pgtest.Role(t, admin)
	change := func(c *Config) { c.Database, c.Retention = as, engine.RetentionConfig{Outbox: 7 * 24 * time.Hour} }
	c := Config{Workflows: []workflow.Source{order.Workflow(provider.New())}, Address: "127.0.0.1:0", Log: quiet}
	change(&c)
	_, err = Start(t.Context(), c)
	assert.ErrorIs(t, err, schema.ErrRights, "without rights")
	_, err = schema.Grant(t.Context(), pool, schema.Default, role)
	require.NoError(t, err)

	// The node finds a key that has expired, a week past its age, and no partition for now.
	do(t, pool, `SELECT pawl.make_partition('outbox', now() - interval '30 days');
		INSERT INTO pawl.command (tenant, scope, key, fingerprint, status, workflow, transition, instance, actor, code, body, created_at,
			finished_at, expires_at)
		VALUES ('default', 's', 'k', sha256('x'), 'succeeded', 'order', 'place', gen_random_uuid(), 'a', 201, '{}', now() - interval '2 days',
			now() - interval '2 days', now() - interval '1 day')`)
	do(t, pool, `DO $$ DECLARE week text; BEGIN
		FOR week IN SELECT c.relname FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
				WHERE i.inhparent = 'pawl.outbox'::regclass AND c.relname >= to_char(now(), '"outbox_"IYYY"w"IW') LOOP
			EXECUTE format('DROP TABLE pawl.%I', week);
		END LOOP; END $$`)

	s := service(t, change)
	await.Eventually(t, "the service is ready", func() bool { code, _ := request(t, "GET", s.URL()+"/readyz", ""); return code == 200 })
	code, body := request(t, "POST", s.URL()+"/v1/workflows/order/place", cart)
	require.Equal(t, 201, code, body)
	count := func(sql string) (n int) {
		t.Helper()
		require.NoError(t, pool.QueryRow(t.Context(), sql).Scan(&n))
		return n
	}
	await.Eventually(t, "the key is purged", func() bool {
		return count("SELECT count(*) FROM pawl.command WHERE key = 'k' AND scope = 's' AND status = 'expired'") == 1
	})
	await.Eventually(t, "the old week is dropped", func() bool {
		return count(`SELECT count(*) FROM pg_class WHERE relname = to_char(now() - interval '30 days', '"outbox_"IYYY"w"IW')`) == 0
	})
	assert.Equal(t, 1, count(`SELECT count(*) FROM pg_class WHERE relname = to_char(now(), '"outbox_"IYYY"w"IW')`),
		"there is no partition for now")
	if n := count("SELECT count(*) FROM pg_class AS c JOIN pg_roles AS r ON r.oid = c.relowner WHERE r.rolname = '" + role + "'"); n != 0 {
		t.Errorf("the role owns %d relations", n)
	}
}

func do(t *testing.T, pool *pgxpool.Pool, sql string) {
	t.Helper()
	_, err := pool.Exec(t.Context(), sql)
	require.NoError(t, err)
}
