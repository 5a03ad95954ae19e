package pgtest

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
)

func TestAsRole_OwnsNothing(t *testing.T) {
	admin := DirectPool(t)
	t.Setenv(EnvRole, "")
	if got := AsRole(t, admin, func(*pgxpool.Pool, string) error { t.Error("rights are granted"); return nil }); got != admin {
		t.Error("without the switch it is another pool")
	}
	t.Setenv(EnvRole, "1")
	var role string
	pool := AsRole(t, admin, func(_ *pgxpool.Pool, name string) error { role = name; return nil })
	exec := func(by *pgxpool.Pool, sql string) error { _, err := by.Exec(t.Context(), sql); return err }
	if err := exec(admin, "CREATE TABLE public.ledger (n int); CREATE SCHEMA pawl; CREATE TABLE pawl.instance (n int)"); err != nil {
		t.Fatal(err)
	}
	var user string
	if err := pool.QueryRow(t.Context(), "SELECT session_user").Scan(&user); err != nil || user != role {
		t.Errorf("connected as %s, %v; want %s", user, err, role)
	}
	if err := exec(pool, "INSERT INTO public.ledger VALUES (1)"); err != nil {
		t.Errorf("a table of the test: %v", err)
	}
	for _, sql := range []string{"INSERT INTO pawl.instance VALUES (1)", "ALTER TABLE public.ledger ADD m int", "CREATE ROLE other"} {
		if err := exec(pool, sql); err == nil {
			t.Errorf("the role may %s", sql)
		}
	}
}
