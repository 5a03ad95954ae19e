package pgtest

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// EnvRole names the environment variable that makes the engines of tests connect as a role that owns nothing, when it is
// not empty. It has no effect on pools that lead through PgBouncer, which does not know the roles.
const EnvRole = "PAWL_ROLE"

// AsRole returns pool, or with EnvRole set a pool of a role that owns nothing, on the same database and with the same
// configuration. grant gives it its rights, through a pool of the owner. It may also use the test's own tables, which are in the schema public.
func AsRole(t testing.TB, pool *pgxpool.Pool, grant func(owner *pgxpool.Pool, role string) error) *pgxpool.Pool {
	t.Helper()
	if os.Getenv(EnvRole) == "" || pooled(t, pool) {
		return pool
	}
	role, as := Role(t, pool)
	owner := DirectTo(t, pool) // pool may count queries
	if err := grant(owner, role); err != nil {
		t.Fatalf("pgtest: grant rights: %v", err)
	}
	own := strings.ReplaceAll(`GRANT ALL ON SCHEMA public TO "%"; GRANT ALL ON ALL TABLES IN SCHEMA public TO "%";
		GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO "%"; ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT ALL ON TABLES TO "%";
		ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT ALL ON SEQUENCES TO "%"`, "%", role)
	if _, err := owner.Exec(t.Context(), own, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatalf("pgtest: grant rights: %v", err)
	}
	direct, err := pgx.ParseConfig(as)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	config := pool.Config()
	config.ConnConfig.User, config.ConnConfig.Password = direct.User, direct.Password
	return openConfig(t, config)
}

// Role creates a role that may log in and has no rights of its own, and returns its name and the connection string with
// which it connects directly to the database of pool. The role is dropped when the test ends.
func Role(t testing.TB, pool *pgxpool.Pool) (role, as string) {
	t.Helper()
	s, err := connect()
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	name, password := "pawltest_"+strings.ToLower(rand.Text()), rand.Text()
	quoted := pgx.Identifier{name}.Sanitize()
	if _, err := s.admin.Exec(t.Context(), fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD '%s'", quoted, password)); err != nil {
		t.Fatalf("pgtest: create a role: %v", err)
	}
	database := s.directURLFor(pool.Config().ConnConfig.Database)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		if err := dropRole(ctx, s, database, quoted); err != nil {
			t.Errorf("pgtest: drop a role: %v", err)
		}
	})
	return name, asRole(database, name, password)
}

// NeedsOwner skips a test whose engine does what only the owner of the tables may, or a superuser.
func NeedsOwner(t testing.TB) {
	t.Helper()
	if os.Getenv(EnvRole) != "" {
		t.Skip("a role that owns nothing may not do this")
	}
}

// pooled reports whether a pool leads through the PgBouncer of this process.
func pooled(t testing.TB, pool *pgxpool.Pool) bool {
	t.Helper()
	s, err := connect()
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.front == nil {
		return false
	}
	config, err := pgx.ParseConfig(s.front.Through(s.base))
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	return config.Port == pool.Config().ConnConfig.Port
}

// dropRole removes a role and its rights in one database.
func dropRole(ctx context.Context, s *server, database, quoted string) error {
	conn, err := pgx.Connect(ctx, database)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, "DROP OWNED BY "+quoted); err != nil {
		return err
	}
	_, err = s.admin.Exec(ctx, "DROP ROLE "+quoted)
	return err
}

// asRole replaces the user in a connection string, which is a URL or a list of keywords and values.
func asRole(database, role, password string) string {
	if u, err := url.Parse(database); err == nil && strings.HasPrefix(u.Scheme, "postgres") {
		u.User = url.UserPassword(role, password)
		return u.String()
	}
	return fmt.Sprintf("%s user=%s password=%s", database, role, password) // the last one counts
}
