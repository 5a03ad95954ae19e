package pgtest

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// EnvRole names the environment variable that makes the engines of tests connect as a role that owns nothing, when it is
// not empty.
const EnvRole = "PAWL_ROLE"

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
