package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	upstream "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inbox"
	"github.com/pawlhq/pawl/inbox/jetstream"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/outbox/sink/natstest"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// deposit is what the bank says.
type deposit struct {
	Account string `json:"account" validate:"required"`
	Amount  int    `json:"amount"`
}

// accounts is a workflow that the bank's messages open and fill.
var accounts = workflow.Define("account", 1,
	workflow.Start("open", "open", func(_ *workflow.Call, _ *tally, _ open) error { return nil }).
		BusinessKey(func(p open) string { return p.Name }).
		Receive("bank", workflow.JSON(func(m workflow.Message, d deposit) (workflow.Address, open, error) {
			if m.Type != "bank.opened" {
				return workflow.Address{}, open{}, workflow.ErrNotMine
			}
			return workflow.Address{}, open{Name: d.Account}, nil
		})),
	workflow.On("add", workflow.From("open"), workflow.Stay, func(_ *workflow.Call, t *tally, p add) error {
		t.N += p.By
		return nil
	}).Receive("bank", workflow.JSON(func(m workflow.Message, d deposit) (workflow.Address, add, error) {
		if m.Type != "bank.deposited" {
			return workflow.Address{}, add{}, workflow.ErrNotMine
		}
		return workflow.Address{BusinessKey: d.Account}, add{By: d.Amount}, nil
	})),
	workflow.On("close", workflow.From("open"), "closed", func(*workflow.Call, *tally, workflow.None) error { return nil }),
).Final("closed")

// counted is a source that counts what it hands over.
type counted struct {
	inbox.Source
	n atomic.Int64
}

func (c *counted) Run(ctx context.Context, consume func(context.Context, transitions.Message) error) error {
	return c.Source.Run(ctx, func(ctx context.Context, m transitions.Message) error {
		c.n.Add(1)
		return consume(ctx, m)
	})
}

// bankSource is where the bank's messages come from. Their id is in a header of
// its own: the stream must not know copies for copies. The server delivers what comes again before what is new, so those that come too
// early must come less often than a busy machine can take them.
func bankSource(url string) (*jetstream.Source, error) {
	return jetstream.New(jetstream.Config{URL: url, Stream: "BANK", Consumer: "bank", IDHeader: "Ref",
		AckWait: 2 * time.Second, Retry: workflow.Retry{First: 20 * time.Millisecond, Max: 5 * time.Second}})
}

// withBank lets an engine take the bank's messages, however often they come too
// early.
func withBank(c *engine.Config, source inbox.Source) {
	c.Workflows, c.Sources, c.MaxDeliveries = append(c.Workflows, accounts), []inbox.Source{source}, 1_000_000
}

// bankStream makes the stream of the bank's messages, and a source that reads it.
func bankStream(t testing.TB, url string) (upstream.JetStream, upstream.Stream, inbox.Source) {
	t.Helper()
	conn, err := nats.Connect(url)
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	js, err := upstream.New(conn)
	require.NoError(t, err)
	stream, err := js.CreateStream(bounded(t), upstream.StreamConfig{Name: "BANK", Subjects: []string{"bank.>"}})
	require.NoError(t, err)
	source, err := bankSource(url)
	require.NoError(t, err)
	return js, stream, source
}

// Every message is in the stream ten times, and two programs take them at the same
// time. The deposits come before the accounts are opened, one of the programs is
// killed in the middle, and one id comes with two amounts. Each message has one
// effect, the one that contradicts is listed, and nothing is left in the stream.
func TestInbox_DuplicatesOnTwoNodes(t *testing.T) {
	t.Parallel()
	const each, depositors, copies = 5, 5, 10
	server := natstest.Start(t)
	js, stream, source := bankStream(t, server.URL())
	pool := database(t)
	here := &counted{Source: source}
	first := start(t, pool, func(c *engine.Config) { withBank(c, here) })
	second := startNode(t, pool, nodeInbox+"="+server.URL())
	consumer := func() *upstream.ConsumerInfo {
		t.Helper()
		c, err := stream.Consumer(bounded(t), "pawl-bank")
		require.NoError(t, err)
		return c.CachedInfo()
	}

	send := func(kind, id string, d deposit) {
		body, err := json.Marshal(d)
		require.NoError(t, err)
		_, err = js.PublishMsgAsync(&nats.Msg{Subject: kind, Header: nats.Header{"Ref": {id}}, Data: body})
		require.NoError(t, err)
	}
	for range copies {
		for a := range depositors {
			for n := range each {
				send("bank.deposited", fmt.Sprintf("d-%d-%d", a, n), deposit{fmt.Sprint(a), n})
			}
		}
	}
	elsewhere := func() int64 { return int64(consumer().Delivered.Consumer) - here.n.Load() }
	await.Eventually(t, "both are at it", func() bool { return here.n.Load() > 50 && elsewhere() > 100 })
	for range copies {
		for a := range depositors {
			send("bank.opened", fmt.Sprint("o-", a), deposit{Account: fmt.Sprint(a)})
		}
	}
	await.Eventually(t, "something is done", func() bool { return number(t, pool, `SELECT count(*) FROM pawl.audit`) > depositors })
	killed := consumer().NumAckPending
	second.kill()
	third := startNode(t, pool, nodeInbox+"="+server.URL())
	await.Eventually(t, "the first deposit is done", func() bool {
		return number(t, pool, `SELECT count(*) FROM pawl.command WHERE key = 'd-0-0'`) == 1
	})
	send("bank.deposited", "d-0-0", deposit{"0", 1_000_000})

	select {
	case <-js.PublishAsyncComplete():
	case <-time.After(patience):
		t.Fatal("not all could be published")
	}
	await.Eventually(t, "all is acknowledged", func() bool {
		i := consumer()
		return i.NumPending == 0 && i.NumAckPending == 0
	})
	third.end(t)
	const right = `SELECT count(*) FROM pawl.instance WHERE (data->>'n')::int = $1 AND version = $2`
	assert.Equal(t, int64(depositors), number(t, pool, right, each*(each-1)/2, 1+each), "accounts of are right")
	dead, _, err := first.Admin().DeadMessages(bounded(t), inspect.DeadMessageFilter{})
	require.NoError(t, err)
	require.Len(t, dead, 1)
	assert.Equal(t, "d-0-0", dead[0].ID)
	assert.Equal(t, workflow.MessageReused, dead[0].Code)
	wantSound(t, first, pool)
	t.Logf("%d deliveries here and %d elsewhere; %d messages were not acknowledged when the node was killed",
		here.n.Load(), elsewhere(), killed)
}
