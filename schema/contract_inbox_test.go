package schema_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/internal/testkit/pgtest"
)

func TestConsumeOncePerConsumer(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	for _, tt := range []struct {
		args string
		want bool
	}{
		{"'billing', 'm-1', sha256('a')", true},
		{"'billing', 'm-1', sha256('a')", false},
		{"'billing', 'm-2', sha256('a')", true},
		{"'stock', 'm-1', sha256('b')", true},
		{"'billing', 'm-1', sha256('b'), tenant => 'acme'", true},
		{"'billing', 'm-1', sha256('b'), tenant => 'acme'", false},
	} {
		assert.Equal(t, tt.want, ask[bool](t, pool, "SELECT pawl.consume("+tt.args+")"), tt.args)
	}
}

func TestConsumeErrors(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	exec(t, pool, "SELECT pawl.consume('billing', 'm-1', sha256('a'))")
	for _, tt := range []struct{ state, args, message string }{
		{"P4000", "NULL, 'm', sha256('')", "consumer is missing"},
		{"P4000", "repeat('x', 250), 'm', sha256('')", "longer than 249 bytes"},
		{"P4001", "'c', '', sha256('')", "message id is missing"},
		{"P4001", "'c', repeat('x', 256), sha256('')", "longer than 255 bytes"},
		{"P4003", "'c', 'm', NULL", "hash is missing"},
		{"P4050", "'billing', 'm-1', sha256('b')", "another payload"},
		{"22023", "'c', 'm', sha256(''), tenant => NULL", "tenant is missing"},
		{"22023", "'c', 'm', sha256(''), NULL", "time to keep"},
		{"22023", "'c', 'm', sha256(''), '0'", "time to keep"},
	} {
		if e := refused(t, pool, tt.state, "SELECT pawl.consume("+tt.args+")"); !strings.Contains(e.Message, tt.message) ||
			e.Code == "P4050" && (e.Hint == "" || !strings.Contains(e.Detail, `message "m-1"`)) {
			t.Errorf("%s: %q, detail %q", tt.args, e.Message, e.Detail)
		}
	}
}

// The second consumer waits for the first; if that rolls back, the second consumes.
func TestConcurrentConsumerWaits(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		commits bool
		request string
	}{"committed": {true, "a"}, "rolled back": {false, "a"}, "another payload": {true, "b"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.Pool(t)
			tx := begin(t, pool)
			exec(t, tx, "SELECT pawl.consume('billing', 'm-1', sha256('a'))")
			second := background(t, pool, func(conn *pgxpool.Conn) (first bool, err error) {
				err = conn.QueryRow(t.Context(), "SELECT pawl.consume('billing', 'm-1', sha256($1))", []byte(tt.request)).Scan(&first)
				return first, err
			})
			if tt.commits {
				commit(t, tx)
			} else if err := tx.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			got := <-second
			if tt.request == "b" {
				raised(t, got.err, "P4050")
			} else if got.err != nil || got.value == tt.commits {
				t.Errorf("got %v, %v", got.value, got.err)
			}
		})
	}
}
