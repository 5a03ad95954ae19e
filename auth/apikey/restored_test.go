package apikey

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
)

// A restored table counts its changes again, so the cache is cleared.
func TestRestoredTableClearsCache(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	here, _ := start(t, pool, Config{Every: time.Millisecond})
	there, _ := start(t, pool, Config{Every: time.Millisecond})
	first, _ := here.make(t, reader("first"))
	second, text := here.make(t, reader("second"))
	_, seen := here.make(t, reader("seen"))
	sees := there.want(t, seen)
	_, err := here.Revoke(t.Context(), "acme", first.ID, "ann")
	require.NoError(t, err)
	_, err = here.Revoke(t.Context(), "acme", sees.Proof.By, "ann")
	require.NoError(t, err)
	await.Receive(t, "the other node has seen both changes", sees.Ended)
	open := there.want(t, text)
	_, err = pool.Exec(t.Context(), "UPDATE pawl.api_key SET revision = 0, revoked_at = NULL, revoked_by = NULL")
	require.NoError(t, err)
	await.Receive(t, "what is open ends", open.Ended)
	open = there.want(t, text)
	if _, err := here.Revoke(t.Context(), "acme", second.ID, "ann"); err != nil { // change 1 again
		t.Fatal(err)
	}
	await.Receive(t, "what is open ends", open.Ended)
	there.wantRefused(t, text, auth.Revoked)
	there.want(t, seen) // as in the table
}
