package faults

import (
	"bytes"
	"context"
	"fmt"
	"io"
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
	return transitions.Command{Key: "place", Workflow: "order", Transition: "place",
		Payload: fmt.Appendf(nil, `{"customer":"c","cart":"k-%d","total":%d,"currency":"EUR"}`, n,
			1000+n), Options: transitions.Options{Scope: fmt.Sprintf("order %d", n)}}
}

func pay(n int) transitions.Command {
	return transitions.Command{Key: "pay", Workflow: "order", Transition: "pay",
		BusinessKey: fmt.Sprintf("c:k-%d", n), Payload: []byte(`{"method":"card"}`), Options: transitions.Options{Scope: fmt.Sprintf("order %d",
			n)}}
}

// effect is the key with which the provider knows the payment of the n-th order.
func effect(n int) string {
	return transitions.EffectKey(transitions.Ref{Tenant: "default", Scope: fmt.Sprintf("order %d", n), Key: "pay"})
}

func instanceOf(n int) uuid.UUID {
	return transitions.InstanceID("default", "order", fmt.Sprintf("c:k-%d", n))
}

// order places the n-th order at a node and has it paid, and returns when the
// payment is accepted.
func (s *shop) order(n int, at *node) {
	s.t.Helper()
	for _, c := range []transitions.Command{place(n), pay(n)} {
		path := "/v1/workflows/order/place"
		if c.BusinessKey != "" {
			path = "/v1/workflows/order/keys/" + c.BusinessKey + "/" + c.Transition
		}
		r, err := http.NewRequestWithContext(bounded(s.t), http.MethodPost, "http://"+at.address+path, bytes.NewReader(c.Payload))
		if err != nil {
			s.t.Fatal(err)
		}
		for name, value := range map[string]string{"Content-Type": "application/json", "Idempotency-Key": c.Key, "Idempotency-Scope": c.Scope} {
			r.Header.Set(name, value)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			s.t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close() // read to its end
		if err != nil || answer.StatusCode != http.StatusCreated && answer.StatusCode != http.StatusAccepted {
			s.t.Fatalf("order %d, %s: %s %s, %v", n, c.Transition, answer.Status, body, err)
		}
	}
}

// wantPaidOnce checks the n-th order, its history and the provider's books.
func (s *shop) wantPaidOnce(e *engine.Engine, n int) {
	s.t.Helper()
	inst, err := e.Read().Instance(bounded(s.t), "", instanceOf(n))
	if err != nil {
		s.t.Error(err)
		return
	}
	history, err := e.Read().History(bounded(s.t), "", inst.ID, 0, 100)
	if err != nil {
		s.t.Error(err)
		return
	}
	var endings []string
	for _, h := range history {
		if h.Transition == "pay" || h.Transition == "pay.failed" {
			endings = append(endings, h.Transition)
		}
	}
	books := s.bank.Ledger()[effect(n)]
	switch inst.State {
	case order.Paid:
		if books.Charges != 1 || books.Refunds != 0 || len(endings) != 1 {
			s.t.Errorf("order %d is paid: endings %v, %+v", n, endings, books)
		}
	case order.PaymentFailed:
		if books.Charges != books.Refunds || len(endings) != 1 {
			s.t.Errorf("order %d could not be paid: endings %v, %+v", n, endings, books)
		}
	default:
		s.t.Errorf("order %d is %s: %+v", n, inst.State, books)
	}
}

// Nodes are killed in the middle of a charge: the provider has the request, and
// does it before or after the node is gone, whose answer nobody hears. Another
// node, or the one that was started again, takes over when the lease has run
// out. PAWL_FULL=1 kills 200 times.
func TestNodesKilledInTheMiddleOfAChargeChargeOnce(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	s := newShop(t)
	kills := 6
	if os.Getenv("PAWL_FULL") != "" {
		kills = 200
	}
	watcher := s.engine(func(c *engine.Config) { c.InFlight.Workers = -1 }) // it only looks
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
			if _, err := watcher.Await(bounded(t), transitions.Ref{Scope: pay(i).Scope, Key: "pay"}); err != nil {
				t.Fatalf("order %d after kill %d: %v", i, kill, err)
			}
		}
		slowest = max(slowest, time.Since(dead))
		var err error
		nodes[victim], err = launch(t, s.pool, nodeProvider+"="+s.url)
		require.NoError(t, err)
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

// Chance decides what the provider does with each request, and nodes come and
// go: whatever happens, every order ends, and the books agree.
func TestEveryOrderEndsHoweverTheProviderBehaves(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	s := newShop(t)
	s.bank.Misbehave(provider.Chances{Seed: 7, Fail: 0.15, Lose: 0.15, Hang: 0.02}.Behave)
	engines := []*engine.Engine{s.engine(), s.engine(func(c *engine.Config) { c.PollOnly = true })}
	const orders = 60
	var work sync.WaitGroup
	for n := range orders {
		work.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
			defer cancel()
			e := engines[n%2]
			for _, c := range []transitions.Command{place(n), pay(n)} {
				if r, err := e.Submit(ctx, c); err != nil || r.Refused() {
					t.Errorf("order %d: %+v, %v", n, r, err)
					return
				}
			}
			if n%5 == 0 { // meanwhile the customer changes his mind
				cancel := pay(n)
				cancel.Transition, cancel.Key, cancel.Payload = "cancel", "cancel", []byte(`{"reason":"too dear"}`)
				_, err := e.Submit(ctx, cancel)
				assert.NoErrorf(t, err, "order %d", n)
			}
			_, err := engines[1-n%2].Await(ctx, transitions.Ref{Scope: pay(n).Scope, Key: "pay"})
			assert.NoErrorf(t, err, "order %d", n)
		})
	}
	work.Wait()
	s.waitForUndos()
	for n := range orders {
		inst, err := engines[0].Read().Instance(bounded(t), "", instanceOf(n))
		require.NoError(t, err)
		if inst.State != order.Cancelled {
			s.wantPaidOnce(engines[0], n)
			continue
		}
		books := s.bank.Ledger()[effect(n)]
		assert.Equalf(t, books.Refunds, books.Charges, "order %d is cancelled, but %+v", n, books)
	}
	wantSound(t, engines[0], s.pool)
}

// waitForUndos waits until no command is in flight but timers.
func (s *shop) waitForUndos() {
	s.t.Helper()
	waitUntil(s.t, "nothing is in flight", func() bool {
		return number(s.t, s.pool, `SELECT count(*) FROM pawl.command WHERE phase IN ('working', 'undoing')`) == 0
	})
}
