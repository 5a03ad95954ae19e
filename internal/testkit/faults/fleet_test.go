package faults

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
)

// fleet is nodes on one database that are killed and replaced. A node keeps its URL when it is replaced.
type fleet struct {
	t    testing.TB
	pool *pgxpool.Pool
	env  []string

	mu    sync.Mutex
	nodes []*node
	kills int
}

func startFleet(t testing.TB, pool *pgxpool.Pool, nodes int, env ...string) *fleet {
	t.Helper()
	f := &fleet{t: t, pool: pool, env: env}
	for range nodes {
		f.nodes = append(f.nodes, startNode(t, pool, env...))
	}
	return f
}

// url is the address of a node for clients that dial with the fleet. The port is the number of the node.
func (f *fleet) url(i int) string { return fmt.Sprintf("http://127.0.0.1:%d", i) }

// dial connects to the current address of a node. Another program may have the address of a killed node.
func (f *fleet) dial(ctx context.Context, network, address string) (net.Conn, error) {
	_, port, _ := net.SplitHostPort(address)
	i, err := strconv.Atoi(port)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	current := f.nodes[i].address
	f.mu.Unlock()
	return new(net.Dialer).DialContext(ctx, network, current)
}

func (f *fleet) client() *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, DialContext: f.dial}}
}

// replace kills a node and starts another in its place.
func (f *fleet) replace(i int) {
	f.nodes[i].kill()
	n, err := launch(f.t, f.pool, f.env...)
	if !assert.NoError(f.t, err) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.nodes[i] = n
	f.kills++
}

// replaceOnRequest replaces node i, or each in turn if i is negative, for each value of due.
// finish ends it and returns the number of kills.
func (f *fleet) replaceOnRequest(i int) (due chan<- struct{}, finish func() int) {
	requests, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for range requests {
			if i < 0 {
				f.replace(f.kills % len(f.nodes))
			} else {
				f.replace(i)
			}
		}
	}()
	return requests, sync.OnceValue(func() int {
		close(requests)
		<-done
		return f.kills
	})
}

// stop stops all nodes.
func (f *fleet) stop() {
	for _, n := range f.nodes {
		n.end(f.t)
	}
}
