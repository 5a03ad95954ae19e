package pgtest

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAsRole_OwnsNothing(t *testing.T) {
	admin := DirectPool(t)
	t.Setenv(EnvRole, "")
	got := AsRole(t, admin, func(*pgxpool.Pool, string) error { t.Error("rights are granted"); return nil })
	assert.True(t, got == admin, "without the switch it is another pool")
	t.Setenv(EnvRole, "1")
	var role string
	pool := AsRole(t, admin, func(_ *pgxpool.Pool, name string) error { role = name; return nil })
	exec := func(by *pgxpool.Pool, sql string) error { _, err := by.Exec(t.Context(), sql); return err }
	require.NoError(t, exec(admin, "CREATE TABLE public.ledger (n int); CREATE SCHEMA pawl; CREATE TABLE pawl.instance (n int)"))
	var user string
	err := pool.QueryRow(t.Context(), "SELECT session_user").Scan(&user)
	assert.Truef(t, err == nil && user == role, "connected as %s, %v; want %s", user, err, role)
	assert.NoError(t, exec(pool, "INSERT INTO public.ledger VALUES (1)"), "a table of the test")
	for _, sql := range []string{"INSERT INTO pawl.instance VALUES (1)", "ALTER TABLE public.ledger ADD m int", "CREATE ROLE other"} {
		assert.Errorf(t, exec(pool, sql), "the role may %s", sql)
	}
}
