package schema_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/workflow"
)

func TestResourceLockIsSharedWithSQL(t *testing.T) {
	t.Parallel()
	pool := contract(t)
	e := started(t, pool)
	inGo, inSQL := begin(t, pool), begin(t, pool)
	const resource = "settlement:m-1:2026-01-02"
	if err := e.Lock(t.Context(), inGo, "", resource); err != nil {
		t.Fatal(err)
	}
	if err := e.Lock(t.Context(), inGo, "", resource); err != nil {
		t.Errorf("who has it gets it again: %v", err)
	}
	if ask[bool](t, inSQL, "SELECT pawl.try_lock($1)", resource) {
		t.Error("SQL got it too")
	}
	for _, free := range []string{"SELECT pawl.try_lock('settlement:m-1:2026-01-03')", "SELECT pawl.try_lock('" + resource + "', 'acme')",
		"SELECT pawl.try_lock('tsettlement:m-1:2026-01-02', 'defaul')"} {
		if !ask[bool](t, inSQL, free) {
			t.Errorf("%s is held", free)
		}
	}
	waiting := background(t, pool, func(conn *pgxpool.Conn) (string, error) {
		_, err := conn.Exec(t.Context(), "SELECT pawl.lock($1)", resource)
		return "", err
	})
	commit(t, inGo)
	if got := <-waiting; got.err != nil {
		t.Error(got.err)
	}

	exec(t, inSQL, "SELECT pawl.lock($1)", resource)
	other := begin(t, pool)
	if got, err := e.TryLock(t.Context(), other, "default", resource); got || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
	exec(t, other, "SET LOCAL lock_timeout = '10 ms'")
	wantCode(t, e.Lock(t.Context(), other, "", resource), workflow.Locked)
	if err := inSQL.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err := e.TryLock(t.Context(), begin(t, pool), "", resource); !got || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestLockRejectsInvalidNames(t *testing.T) {
	t.Parallel()
	pool := contract(t)
	e := started(t, pool)
	tx := begin(t, pool)
	for _, tt := range []struct{ tenant, resource string }{{"", ""}, {"", strings.Repeat("x", 256)}, {"", "\x00"},
		{strings.Repeat("x", 65), "r"}} {
		wantCode(t, e.Lock(t.Context(), tx, tt.tenant, tt.resource), workflow.InvalidRequest)
		_, err := e.TryLock(t.Context(), tx, tt.tenant, tt.resource)
		wantCode(t, err, workflow.InvalidRequest)
	}
	for _, args := range []string{"NULL", "''", "repeat('x', 256)", "'r', ''", "'r', repeat('x', 65)"} {
		refused(t, pool, "22023", "SELECT pawl.lock("+args+")")
		refused(t, pool, "22023", "SELECT pawl.try_lock("+args+")")
	}
}

func TestLockWaitEndsWithContext(t *testing.T) {
	t.Parallel()
	pool := contract(t)
	e := started(t, pool)
	exec(t, begin(t, pool), "SELECT pawl.lock('r')")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	wantCode(t, e.Lock(ctx, begin(t, pool), "", "r"), workflow.TimedOut)
}
