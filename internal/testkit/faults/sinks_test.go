package faults

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inbox/signature"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/outbox/relay"
	"github.com/pawlhq/pawl/outbox/sink/jetstream"
	"github.com/pawlhq/pawl/outbox/sink/webhook"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// sinkLease lets the tests die often.
const sinkLease = 1500 * time.Millisecond

// nodeSinks are the sinks that a node's environment names.
func nodeSinks() ([]relay.Sink, error) {
	// No event is given up: what is tested is that all arrive.
	retry := workflow.Retry{Attempts: 1_000_000, First: 5 * time.Millisecond, Max: 100 * time.Millisecond}
	var sinks []relay.Sink
	if url := os.Getenv(nodeNATS); url != "" {
		to, err := jetstream.New(jetstream.Config{URL: url})
		if err != nil {
			return nil, err
		}
		sinks = append(sinks, relay.Sink{Name: "nats", To: to, Retry: retry, Batch: 64})
	}
	if url := os.Getenv(nodeWebhook); url != "" {
		secret, err := signature.ParseSecret(os.Getenv(nodeSecret))
		if err != nil {
			return nil, err
		}
		to, err := webhook.New(webhook.Config{URL: url, Secrets: []signature.Secret{secret}, Timeout: stall / 2,
			PlainHTTP: true, Private: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
		if err != nil {
			return nil, err
		}
		sinks = append(sinks, relay.Sink{Name: "webhook", To: to, Retry: retry, Batch: 8, Calls: 32})
	}
	return sinks, nil
}

// killings is a test in which the node that delivers to a sink is killed in the
// middle of its work, over and over. PAWL_FULL=1 makes it 100 times during
// 100,000 events.
type killings struct {
	t       *testing.T
	pool    *pgxpool.Pool
	e       *engine.Engine // publishes, and delivers nothing
	sink    string
	env     []string
	arrived func() int // events, with repetitions
	nodes   map[string]*node
	busy    int // kills while something was still to be delivered
}

const (
	killedRounds, allKilledRounds = 4, 100
	counters                      = 50
	announced                     = 10 // of each counter in a round; each is two events
)

func newKillings(t *testing.T, sink string, arrived func() int, env ...string) *killings {
	t.Helper()
	pool := database(t)
	k := &killings{t: t, pool: pool, e: start(t, pool), sink: sink, env: env, arrived: arrived, nodes: map[string]*node{}}
	for range 2 {
		k.launch()
	}
	return k
}

// launch starts a node that can deliver.
func (k *killings) launch() {
	k.t.Helper()
	n := startNode(k.t, k.pool, k.env...)
	k.nodes[fmt.Sprintf("-%d-", n.command.Process.Pid)] = n
}

// info is how the sink stands.
func (k *killings) info() inspect.SinkInfo {
	k.t.Helper()
	list, err := k.e.Admin().Sinks(bounded(k.t), "")
	require.NoError(k.t, err)
	if i := slices.IndexFunc(list, func(i inspect.SinkInfo) bool { return i.Name == k.sink }); i >= 0 {
		return list[i]
	}
	return inspect.SinkInfo{Lag: 1} // no node has claimed it yet
}

// run publishes round after round, each with a kill in it, until there were enough
// that prove something, and waits until everything is delivered. It returns how
// many kills there were.
func (k *killings) run(enough func() bool) (kills int) {
	k.t.Helper()
	rounds := killedRounds
	if os.Getenv("PAWL_FULL") != "" {
		rounds = allKilledRounds
	}
	var names []transitions.Command
	for i := range counters {
		names = append(names, opening(fmt.Sprint(i)))
	}
	k.publish(names)
	for round := 0; ; round++ {
		if round >= rounds {
			await.Eventually(k.t, "everything is delivered", func() bool {
				i := k.info()
				return i.Lag == 0 && i.Aside == 0
			})
			if k.busy >= rounds/2 && enough() || round == 5*rounds {
				break
			}
		}
		var cs []transitions.Command
		for n := range announced {
			for i := range counters {
				cs = append(cs, onCounter(fmt.Sprint(i), "announce", fmt.Sprintf("%d-%d", round, n), `{"by":1}`))
			}
		}
		due := k.arrived() + 1 + rand.IntN(2*len(cs)*3/4)
		var publishing sync.WaitGroup
		publishing.Go(func() { k.publish(cs) })
		await.Eventually(k.t, "some events arrive", func() bool { return k.arrived() >= due })
		k.kill()
		kills++
		publishing.Wait()
		k.launch()
	}
	i := k.info()
	assert.Zero(k.t, i.DeadLetters+i.Parked, "dead letters")
	assert.GreaterOrEqualf(k.t, k.busy, rounds/2, "kills of %d with a backlog: the test proves little", kills)
	return kills
}

// kill kills the node that has the sink.
func (k *killings) kill() {
	k.t.Helper()
	await.Eventually(k.t, "somebody has the sink", func() bool {
		holder := k.info().Node
		for pid, n := range k.nodes {
			if strings.Contains(holder, pid) {
				n.kill()
				delete(k.nodes, pid)
				if k.info().Lag > 0 {
					k.busy++
				}
				return true
			}
		}
		return false
	})
}

func (k *killings) publish(cs []transitions.Command) {
	for i, r := range k.e.SubmitMany(k.t.Context(), cs) {
		if !assert.NoErrorf(k.t, r.Err, "%s %s", cs[i].Transition, cs[i].Key) {
			return
		}
	}
}

// delivered is an event as a receiver has it: the id that it knows repetitions by,
// and what the event says.
type delivered struct {
	id       string
	instance uuid.UUID
	version  int64
}

// wantAll fails the test unless these are exactly the events of the outbox, each once, and those of an instance in order.
func (k *killings) wantAll(got []delivered) {
	k.t.Helper()
	rows, err := k.pool.Query(bounded(k.t), `SELECT 'default:' || position || '-' || ordinal, instance, version FROM pawl.outbox`)
	require.NoError(k.t, err)
	want, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (d delivered, err error) {
		return d, row.Scan(&d.id, &d.instance, &d.version)
	})
	require.NoError(k.t, err)
	byID := func(a, b delivered) int { return strings.Compare(a.id, b.id) }
	slices.SortFunc(want, byID)
	assert.True(k.t, slices.Equal(want, slices.SortedFunc(slices.Values(got), byID)), "each event was delivered once")
	last := map[uuid.UUID]delivered{}
	for _, d := range got {
		before := last[d.instance]
		assert.Falsef(k.t, d.version < before.version || d.version == before.version && d.id < before.id,
			"%s was delivered after %s of the same instance", d.id, before.id)
		last[d.instance] = d
	}
}
