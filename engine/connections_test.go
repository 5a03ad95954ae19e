package engine_test

import (
	"fmt"
	"testing"

	"github.com/pawlhq/pawl/internal/await"
	"github.com/pawlhq/pawl/transitions"
)

// A connection costs the server so much when it is opened, and when it ends, that others feel it.
func TestANodeOpensNoMoreConnectionsThanItUses(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e := newEngine(t, pool)
	submit(t, e, applied("1", 1000))
	for i := range 12 { // one after the other
		tx, err := pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), "SELECT FROM pawl.instance FOR UPDATE"); err != nil {
			t.Fatal(err)
		}
		paid := make(chan []transitions.Reply, 1)
		go func() {
			paid <- e.SubmitMany(t.Context(), []transitions.Command{on("pay", "1", fmt.Sprint(i), 1, ""), on("pay", "1", fmt.Sprint(i, "b"), 1, "")})
		}()
		eventually(t, "they wait for the lock", func() bool { return e.Stats().Aside >= int64(2*i+2) })
		rollback(t, tx)
		for _, r := range await.Receive(t, "they are done", paid) {
			if r.Err != nil {
				t.Fatal(r.Err)
			}
		}
	}
	const lane = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'pawl retry lane%'"
	if n := query[int](t, pool, lane); n > 3 { // one, unless the machine is busy
		t.Errorf("for one command at a time %d connections were opened", n)
	}
}
