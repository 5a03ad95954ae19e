package faults

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/transitions"
)

// Connections end before, in and after commits. Every caller still gets the
// answer, and every key has one effect.
func TestConnectionEndsInCommit(t *testing.T) {
	t.Parallel()
	direct := database(t)
	_, err := direct.Exec(t.Context(), ledgerTable)
	require.NoError(t, err)
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(1, 2))
	var started atomic.Bool // an engine's start may fail, and is not what this is about
	p, pool := startProxy(t, direct, func() fate {
		if !started.Load() {
			return passed
		}
		mu.Lock()
		defer mu.Unlock()
		return fate(max(random.IntN(6)-2, 0)) // half of them pass
	})
	e := start(t, pool, func(c *engine.Config) { c.Pipeline.Outage = 4 * patience })
	started.Store(true)
	const callers, rounds = 8, 4
	ctx := underLoad(t)
	var work sync.WaitGroup
	for caller := range callers {
		work.Go(func() {
			x := fmt.Sprint("x", caller)
			for round := range rounds {
				cs := commandsOf(x, round)
				// Singly, together, and through the retry lane: each has its own way to commit.
				var replies []transitions.Reply
				if round%2 == 0 {
					replies = e.SubmitMany(ctx, cs)
				} else {
					for _, c := range cs {
						r, err := e.Submit(ctx, c)
						replies = append(replies, transitions.Reply{Receipt: r, Err: err})
					}
				}
				for i, again := range e.SubmitMany(ctx, cs) {
					first := replies[i]
					if first.Err != nil || again.Err != nil {
						t.Errorf("%s: %v, then %v", cs[i].Key, first.Err, again.Err)
					} else if !again.Receipt.Replayed || string(first.Receipt.Body) != string(again.Receipt.Body) ||
						first.Receipt.Status != again.Receipt.Status {
						t.Errorf("%s: first %d %s\nthen %v %d %s", cs[i].Key, first.Receipt.Status, first.Receipt.Body,
							again.Receipt.Replayed, again.Receipt.Status, again.Receipt.Body)
					}
				}
			}
		})
	}
	work.Wait()
	// Each round adds, announces and writes once.
	n := number(t, direct, `SELECT count(*) FROM pawl.instance WHERE (data->>'n')::int <> $1`, 3*rounds)
	assert.Truef(t, n <= 0, "%d counters are wrong", n)
	assert.Equal(t, int64(callers*rounds), number(t, direct, `SELECT count(*) FROM ledger`), "the ledger has rows")
	n = p.lost.Load()
	assert.Truef(t, n >= 30, "only %d commits were hit; the test proves little", n)
	t.Logf("%d commits were hit, %+v", p.lost.Load(), e.Admin().Stats())
	wantSound(t, e, direct)
}

// commandsOf are the commands of one round on one counter. Only the first
// round's opening makes it.
func commandsOf(x string, round int) []transitions.Command {
	key := func(what string) string { return strings.Join([]string{x, fmt.Sprint(round), what}, " ") }
	again := opening(x)
	again.Key = key("open")
	return []transitions.Command{
		again,
		onCounter(x, "add", key("add"), `{"by":1}`),
		onCounter(x, "add", key("refused"), `{"by":-1}`),
		onCounter(x, "announce", key("announce"), `{"by":1}`),
		onCounter(x, "write", key("write"), fmt.Sprintf(`{"what":%q}`, key("write"))),
	}
}
