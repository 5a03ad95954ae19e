package faults

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/examples/order"
	"github.com/pawlhq/pawl/examples/order/provider"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// shortLease is the lease of nodes whose death is part of a test.
const shortLease = time.Second

// shop is a provider that counts, seen from the test, and the orders paid there.
type shop struct {
	t    *testing.T
	pool *pgxpool.Pool
	bank *provider.Provider
	url  string
}

func newShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{t: t, pool: database(t), bank: provider.New()}
	server := httptest.NewServer(s.bank)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

func (s *shop) node() *node { return startNode(s.t, s.pool, nodeProvider+"="+s.url) }

// engine is a node within the test.
func (s *shop) engine(change ...func(*engine.Config)) *engine.Engine {
	return start(s.t, s.pool, append([]func(*engine.Config){func(c *engine.Config) {
		c.Workflows = []workflow.Source{order.Workflow(&provider.Client{URL: s.url})}
		c.InFlight.Lease = shortLease
	}}, change...)...)
}

// place and pay are the commands of the n-th order.
func place(n int) transitions.Command {
	return transitions.Command{Key: fmt.Sprint("place ", n), Workflow: "order", Transition: "place",
		Payload: fmt.Appendf(nil, `{"customer":"c","cart":"k-%d","total":%d,"currency":"EUR"}`, n, 1000+n)}
}

func pay(n int) transitions.Command {
	return transitions.Command{Key: "pay", Workflow: "order", Transition: "pay", BusinessKey: fmt.Sprintf("c:k-%d", n),
		Payload: []byte(`{"method":"card"}`)}
}

// payment identifies the payment of the n-th order.
func payment(n int) transitions.Ref {
	return transitions.Ref{Tenant: "default", Scope: transitions.DefaultScope("order", "pay", instanceOf(n)), Key: "pay"}
}

// effect is the idempotency key of the n-th payment at the provider.
func effect(n int) string { return transitions.EffectKey(payment(n)) }

func instanceOf(n int) uuid.UUID {
	return transitions.InstanceID("default", "order", fmt.Sprintf("c:k-%d", n))
}

// order places the n-th order at a node and starts its payment.
func (s *shop) order(n int, at *node) {
	s.t.Helper()
	post := func(path string, c transitions.Command, want int) {
		url := "http://" + at.address + "/v1/workflows/order/" + path
		r, err := http.NewRequestWithContext(bounded(s.t), http.MethodPost, url, bytes.NewReader(c.Payload))
		require.NoError(s.t, err)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", c.Key)
		answer, err := http.DefaultClient.Do(r)
		require.NoError(s.t, err)
		assert.NoError(s.t, answer.Body.Close())
		require.Equalf(s.t, want, answer.StatusCode, "order %d: %s", n, c.Transition)
	}
	post("place", place(n), http.StatusCreated)
	post("keys/"+pay(n).BusinessKey+"/pay", pay(n), http.StatusAccepted)
}

// wantPaidOnce checks the n-th order, its history and the provider's ledger.
func (s *shop) wantPaidOnce(e *engine.Engine, n int) {
	s.t.Helper()
	inst, err := e.Read().Instance(bounded(s.t), "", instanceOf(n))
	require.NoError(s.t, err)
	history, err := e.Read().History(bounded(s.t), "", inst.ID, 0, 100)
	require.NoError(s.t, err)
	completions := 0
	for _, h := range history {
		if h.Transition == "pay" || h.Transition == "pay.failed" {
			completions++
		}
	}
	assert.Equalf(s.t, 1, completions, "order %d", n)
	account := s.bank.Ledger()[effect(n)]
	if inst.State == order.Paid {
		assert.Equalf(s.t, [2]int{1, 0}, [2]int{account.Charges, account.Refunds}, "order %d", n)
	} else {
		assert.Equalf(s.t, order.PaymentFailed, inst.State, "order %d", n)
		assert.Equalf(s.t, account.Charges, account.Refunds, "order %d", n)
	}
}

// Nodes are killed during a charge. The provider executes the request before or after the kill, and its answer is lost. Another node, or
// the restarted one, takes over when the lease expires. PAWL_FULL=1 kills 200 times.
func TestNodesKilledDuringChargeChargeOnce(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	s := newShop(t)
	kills := 6
	if os.Getenv("PAWL_FULL") != "" {
		kills = 200
	}
	watcher := s.engine(func(c *engine.Config) { c.InFlight.Workers = -1 }) // it only reads
	nodes := []*node{s.node(), s.node()}
	arrived := make(chan string)
	var mu sync.Mutex
	held := map[string]chan struct{}{} // the first request of each key waits until its node was killed
	s.bank.Misbehave(func(r provider.Request) provider.Behaviour {
		if r.Op != provider.OpCharge || r.N > 1 {
			return provider.Behaviour{}
		}
		mu.Lock()
		gate := held[r.Key]
		mu.Unlock()
		if gate == nil {
			return provider.Behaviour{}
		}
		arrived <- r.Key
		<-gate
		return provider.Behaviour{Lose: rand.IntN(2) == 0}
	})
	n := 0
	var slowest time.Duration
	for kill := range kills {
		victim := kill % 2
		var batch []int
		gate := make(chan struct{})
		for range 5 { // several are in flight when the node dies
			batch = append(batch, n)
			mu.Lock()
			held[effect(n)] = gate
			mu.Unlock()
			s.order(n, nodes[victim])
			n++
		}
		for range batch {
			<-arrived
		}
		if kill%3 == 0 { // the effect happens, then the node dies
			close(gate)
		}
		nodes[victim].kill()
		dead := time.Now()
		if kill%3 != 0 { // the effect happens when the node is gone
			close(gate)
		}
		for _, i := range batch {
			_, err := watcher.Await(bounded(t), payment(i))
			require.NoErrorf(t, err, "order %d after kill %d", i, kill)
		}
		slowest = max(slowest, time.Since(dead))
		nodes[victim] = s.node()
	}
	t.Logf("%d kills, %d orders; the slowest was taken over and paid %s after the kill, with a lease of %s", kills, n, slowest, shortLease)
	for i := range n {
		s.wantPaidOnce(watcher, i)
	}
	for _, n := range nodes {
		n.end(t)
	}
	wantSound(t, watcher, s.pool)
}
