package engine_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/transitions"
)

// Repeated requests for finished commands write nothing and wait for no lock. A new command among them is executed.
func TestReplaysInGroupsLockNothing(t *testing.T) {
	t.Parallel()
	pool, e := started(t, func(c *engine.Config) { c.Pipeline.Committers = 1 })
	const many = 20
	var cs []transitions.Command
	for i := range many {
		cs = append(cs, applied(fmt.Sprint("n-", i), 100))
	}
	ask := func(replayed bool, cs ...transitions.Command) {
		t.Helper()
		for i, r := range e.SubmitMany(t.Context(), cs) {
			require.Truef(t, r.Err == nil && r.Receipt.Replayed == replayed, "%s: replayed %v, %v", cs[i].Key, r.Receipt.Replayed, r.Err)
		}
	}
	ask(false, cs...)
	ask(true, cs...) // from now on the engine expects no other
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	defer rollback(t, tx)
	n, err := tx.Exec(t.Context(), "SELECT FROM pawl.instance FOR UPDATE")
	require.Truef(t, err == nil && n.RowsAffected() == many, "%v %v", n, err)
	ask(true, cs...)
	ask(true, cs[:2]...)
	rollback(t, tx)
	ask(false, append([]transitions.Command{}, applied("another", 100), applied("more", 100))...)
	mixed := append([]transitions.Command{applied("last", 100)}, cs...)
	for i, r := range e.SubmitMany(t.Context(), mixed) {
		assert.Truef(t, r.Err == nil && r.Receipt.Replayed == (i > 0), "%s: replayed %v, %v", mixed[i].Key, r.Receipt.Replayed, r.Err)
	}
}
