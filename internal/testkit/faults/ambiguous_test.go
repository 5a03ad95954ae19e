package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
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

type parcel struct{}

// sendParcel returns a workflow whose activity counts its attempts and asks an operator if its outcome is unknown.
func sendParcel(attempts *atomic.Int64) workflow.Source {
	nothing := func(*workflow.Call, *parcel, workflow.None) error { return nil }
	return workflow.Define("parcel", 1,
		workflow.Start("pack", "packed", nothing),
		workflow.Do("send", workflow.From("packed"), "sending", "sent",
			func(context.Context, *workflow.Attempt, parcel, workflow.None) (workflow.None, error) {
				attempts.Add(1)
				return workflow.None{}, nil
			}, nothing).
			OrElse("packed", func(*workflow.Call, *parcel, workflow.Failure) error { return nil }).AskOperator(),
	).Final("sent")
}

// The answer to the commit that starts an activity is lost. The attempt starts once, without an operator and before the lease expires,
// even if the outage is so long that the caller gets an error.
func TestAmbiguousStart_AttemptRunsOnce(t *testing.T) {
	for name, outage := range map[string]time.Duration{"short outage": 0, "long outage": time.Nanosecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			direct := database(t)
			var cut atomic.Bool
			_, pool := startProxy(t, direct, func() fate {
				if cut.CompareAndSwap(true, false) {
					return unheard
				}
				return passed
			})
			var attempts atomic.Int64
			e := start(t, pool, func(c *engine.Config) {
				c.Workflows, c.InFlight.Lease = []workflow.Source{sendParcel(&attempts)}, time.Hour
				c.Pipeline.Outage = outage
			})
			ctx := underLoad(t)
			for i, again := 0, true; again; i++ { // another commit may be the one whose answer is lost
				packed := must(t, e, transitions.Command{Workflow: "parcel", Transition: "pack", Key: fmt.Sprint("pack ", i)})
				attempts.Store(0)
				send := transitions.Command{Workflow: "parcel", Transition: "send", Key: fmt.Sprint("send ", i), Instance: packed.Instance}
				cut.Store(true)
				accepted, err := e.Submit(ctx, send)
				lost := err != nil
				if lost && outage > 0 && workflow.CodeOf(err) == workflow.Unavailable {
					accepted, err = e.Submit(ctx, send)
				}
				require.NoError(t, err)
				wantSentOnce(ctx, t, e, accepted.Record.Scope, send.Key, &attempts)
				again = lost != (outage > 0) || !lost && !accepted.Replayed
			}
			wantSound(t, e, direct)
		})
	}
}

// wantSentOnce awaits a command and fails the test unless its only attempt succeeded.
func wantSentOnce(ctx context.Context, t *testing.T, e *engine.Engine, scope, key string, attempts *atomic.Int64) transitions.Record {
	t.Helper()
	ref := transitions.Ref{Scope: scope, Key: key}
	r, err := e.Await(ctx, ref)
	require.NoError(t, err)
	require.NoError(t, r.Err())
	record, err := e.Read().Command(ctx, ref)
	require.NoError(t, err)
	assert.Zero(t, record.Failures)
	assert.Equal(t, int64(1), attempts.Load(), "attempts")
	return record
}

// The answer to the commit of a claim is lost, and then the queries of the node, until so many messages are lost.
// The command is released and starts once, without an operator and before the lease expires.
func TestAmbiguousClaim_CommandIsReleased(t *testing.T) {
	for _, lost := range []int64{1, 3} {
		t.Run(fmt.Sprint(lost), func(t *testing.T) {
			t.Parallel()
			direct := database(t)
			var attempts atomic.Int64
			config := func(c *engine.Config) {
				c.Workflows, c.InFlight.Lease = []workflow.Source{sendParcel(&attempts)}, time.Hour
			}
			accepts := start(t, direct, config, func(c *engine.Config) { c.InFlight.Workers = -1 }) // the other node claims
			var p *proxy
			p, pool := startProxy(t, direct, func() fate {
				if n := p.lost.Load(); 0 < n && n < lost {
					return unsent
				}
				return passed
			})
			claim := "WITH claimed AS"
			p.doomed.Store(&claim)
			works := start(t, pool, config)
			packed := must(t, accepts, transitions.Command{Workflow: "parcel", Transition: "pack", Key: "pack"})
			sent := must(t, accepts, transitions.Command{Workflow: "parcel", Transition: "send", Key: "send", Instance: packed.Instance})
			c := wantSentOnce(underLoad(t), t, accepts, sent.Record.Scope, "send", &attempts)
			assert.Equal(t, 2, int(c.Attempt))
			assert.Equal(t, lost, p.lost.Load(), "lost answers")
			wantSound(t, works, direct)
		})
	}
}
