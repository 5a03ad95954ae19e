package faults

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawlhq/pawl/internal/testkit/await"
)

// badNetwork loses, delays, truncates and duplicates the requests and answers of the connections that it dials.
type badNetwork struct {
	dialNode func(ctx context.Context, network, address string) (net.Conn, error)
	count    [faultKinds]atomic.Int64

	mu   sync.Mutex
	dice *rand.Rand
}

// Faults of one exchange.
const (
	noFault = iota
	requestLost
	requestTwice
	requestLate
	answerLost
	answerTruncated
	answerTwice
	streamCut
	faultKinds
)

var faultNames = [faultKinds]string{"none", "request lost", "request twice", "request late", "answer lost", "answer truncated",
	"answer twice", "stream cut"}

var errNetwork = errors.New("network fault")

func (b *badNetwork) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := b.dialNode(ctx, network, address)
	return &badConn{Conn: c, network: b}, err
}

// random returns a number below n.
func (b *badNetwork) random(n int) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.dice.IntN(n)
}

// badConn applies a fault to each request that is written to it, of which four in ten arrive unharmed.
type badConn struct {
	net.Conn
	network *badNetwork
	fault   atomic.Int32
	rest    atomic.Int64 // bytes until a stream is cut; 0 if it is no stream
	again   []byte       // of an answer that comes twice
}

func (c *badConn) Write(p []byte) (int, error) {
	if strings.HasPrefix(string(p), "GET /v1/stream") {
		c.fault.Store(streamCut)
		c.rest.Store(int64(500 + c.network.random(1<<16)))
	}
	if c.fault.Load() == streamCut {
		return c.Conn.Write(p)
	}
	fault := c.network.random(10) - 3
	if fault < 0 || fault >= streamCut {
		fault = noFault
	}
	c.network.count[fault].Add(1)
	c.fault.Store(int32(fault))
	switch fault {
	case requestLost:
		return 0, errors.Join(errNetwork, c.Close())
	case requestTwice:
		if _, err := c.Conn.Write(p); err != nil {
			return 0, err
		}
	case requestLate:
		await.Pass("the network is slow", time.Duration(c.network.random(20))*time.Millisecond)
	}
	return c.Conn.Write(p)
}

func (c *badConn) Read(p []byte) (int, error) {
	if len(c.again) > 0 {
		n := copy(p, c.again)
		c.again = c.again[n:]
		return n, nil
	}
	n, err := c.Conn.Read(p)
	switch c.fault.Load() {
	case answerLost:
		return 0, errors.Join(errNetwork, c.Close())
	case answerTruncated:
		return c.network.random(n + 1), errors.Join(errNetwork, c.Close())
	case answerTwice:
		c.again = append(c.again, p[:n]...)
	case streamCut:
		if c.rest.Add(int64(-n)) < 0 {
			c.network.count[streamCut].Add(1)
			return 0, errors.Join(errNetwork, c.Close())
		}
	}
	return n, err
}
