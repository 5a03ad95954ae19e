package commit

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/internal/kernel/decide"
)

// counted counts the messages that go to the database on its connections.
type counted struct {
	net.Conn
	messages *atomic.Int64
}

func (c counted) Write(b []byte) (int, error) {
	c.messages.Add(1)
	return c.Conn.Write(b)
}

// A single caller waits for each message. An activity needs two for the start and two for the completion: the instance is locked, and then
// all rows are written. A new instance with timers needs one.
func TestMessagesOfASingleCaller(t *testing.T) {
	var messages atomic.Int64
	b := newBench(t, func(c *Config) {
		connect := c.Connect
		c.Limits.Committers = 1
		c.Connect = func(ctx context.Context, name string) (*pgx.Conn, error) {
			conn, err := connect(ctx, name)
			if err != nil {
				return nil, err
			}
			config := conn.Config().Copy()
			_ = conn.Close(ctx)
			dial := config.DialFunc
			config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
				socket, err := dial(ctx, network, address)
				return counted{socket, &messages}, err
			}
			return pgx.ConnectConfig(ctx, config)
		}
	})
	if b.p.config.Pooled {
		t.Skip("without prepared statements there are more")
	}
	took := func(do func()) int64 {
		before := messages.Load()
		do()
		return messages.Load() - before
	}
	for round := range 3 { // the first prepares the statements
		id := b.one(b.command("open", fmt.Sprint("open ", round), uuid.Nil)).Instance
		key := fmt.Sprint("pay ", round)
		opens := took(func() { b.one(b.command("open", key, uuid.Nil)) })
		accepts := took(func() { b.one(b.command("pay", key, id)) })
		ends := took(func() { b.one(b.ending(key, succeeded("x"))) })
		assert.Falsef(t, round > 0 && (opens != 1 || accepts != 2 || ends != 2),
			"a creation with timers takes %d messages, an accept %d, an ending %d", opens, accepts, ends)
	}
}

// A group takes only commands whose instances' data fits in memory, even if the sizes were not known before.
func TestAGroupHoldsNoMoreDataThanItMay(t *testing.T) {
	for name, hot := range map[string]bool{"each an instance": false, "one instance": true} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, func(c *Config) { c.Limits.QueueBytes, c.Limits.GroupSize, c.Limits.GroupBytes = 64<<20, 64, 2<<20 })
			const n, size = 24, 400_000
			var ids []uuid.UUID
			for i := range n {
				if i == 0 || !hot {
					ids = append(ids, b.one(b.theirs("default", fmt.Sprint("open", i), strings.Repeat("x", size))).Instance)
				}
			}
			b.p.sizes.of("deal").Store(0) // as at the start
			groups := b.p.Stats().Groups
			var ps []*decide.Prepared
			for i := range n {
				ps = append(ps, b.command("remind", fmt.Sprint("remind", i), ids[i%len(ids)]))
			}
			for i, r := range b.do(ps...) {
				if r.Err != nil {
					t.Errorf("%d: %v", i, r.Err)
				} else if want := int64(2 + i/len(ids)); r.Receipt.Version != want {
					t.Errorf("command %d made version %d, want %d", i, r.Receipt.Version, want)
				}
			}
			// Read once, and written three times, two of them exceed the bound.
			took := b.p.Stats().Groups - groups
			assert.Truef(t, took >= n/2, "%d commands on %d bytes each went in %d groups, each of which may have 2 MiB", n, size, took)
		})
	}
}
