package jetstream_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	upstream "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/inbox/jetstream"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/outbox/sink/natstest"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

var errLater = errors.New("not now")

// quick is the configuration of most tests. Its AckWait outlasts stalls of the machine.
func quick(url string) jetstream.Config {
	return jetstream.Config{URL: url, Stream: "PAYMENTS", Consumer: "payments", AckWait: 2 * limit, Timeout: limit,
		Retry: workflow.Retry{First: 20 * time.Millisecond, Max: 40 * time.Millisecond}}
}

// hasty has a short AckWait.
func hasty(url string) jetstream.Config {
	c := quick(url)
	c.AckWait, c.Timeout = 300*time.Millisecond, 0
	return c
}

func TestMessageKeepsHeaders(t *testing.T) {
	t.Parallel()
	const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	server := natstest.Start(t)
	s := newStream(t, server)
	for _, m := range []nats.Msg{
		{Subject: "payments.captured", Data: []byte(`{"a":1}`), Header: nats.Header{"Nats-Msg-Id": {"m-1"}, "Ref": {"r-1"},
			"ce-type": {"payment.captured"}, "traceparent": {traceparent}, "tracestate": {"congo=t61"}}},
		{Subject: "payments.captured", Header: nats.Header{"Ref": {"r-2"}, "Traceparent": {traceparent}}},
		{Subject: "payments.late", Data: []byte(`not JSON`)},
		{Subject: "payments.long", Header: nats.Header{"Nats-Msg-Id": {strings.Repeat("x", 256)}}},
	} {
		s.publish(t, m)
	}
	c := quick(server.URL())
	c.Tenant, c.IDHeader, c.Durable = "acme", "Ref", "pawl-payments"
	n := run(t, c, done)
	got := n.messages(t, 4)
	slices.SortFunc(got, func(a, b transitions.Message) int { return strings.Compare(a.Type, b.Type) })
	info, err := s.stream.GetMsg(t.Context(), 3)
	require.NoError(t, err)
	for i, want := range []transitions.Message{
		{ID: "m-1", Type: "payment.captured", Body: []byte(`{"a":1}`), Trace: traceparent + " congo=t61"},
		{ID: "r-2", Type: "payments.captured", Trace: traceparent},
		{ID: fmt.Sprintf("PAYMENTS:3:%d", info.Time.UnixNano()), Type: "payments.late", Body: []byte(`not JSON`)},
		{ID: fmt.Sprintf("sha256:%x", sha256.Sum256(bytes.Repeat([]byte("x"), 256))), Type: "payments.long"},
	} {
		g := got[i]
		assert.Truef(t, g.ID == want.ID && g.Type == want.Type && bytes.Equal(g.Body, want.Body) && g.Tenant == "acme" &&
			g.Consumer == "payments" && g.Delivery == 1 && g.Trace == want.Trace,
			"got %+v, want %+v", g, want)
	}
	s.wantAllAcknowledged(t)
}

// The node crashes after the work and before the acknowledgement.
func TestCrashBeforeAckRedelivers(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t)
	proxy := natstest.NewProxy(t, server.Addr())
	s := newStream(t, server)
	s.publishIDs(t, 1)
	ctx, die := context.WithCancel(t.Context())
	mortal := hasty(proxy.URL())
	mortal.Options = []nats.Option{nats.NoReconnect()}
	first := runFor(t, ctx, mortal, func(context.Context, transitions.Message) error {
		proxy.Cut()
		die()
		return nil
	})
	first.wait(t)
	second := run(t, hasty(server.URL()), done)
	got := second.first(t)
	assert.Truef(t, got.ID == "m-1" && got.Delivery >= 2, "got %+v", got)
	s.wantAllAcknowledged(t)
}

// A message that cannot be consumed yet is redelivered with increasing delays without delaying
// others.
func TestRetriedMessageDoesNotBlockOthers(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t)
	s := newStream(t, server)
	s.publishIDs(t, 20)
	c := quick(server.URL())
	c.Concurrency = 1
	var order []string
	var deliveries int // of the first
	n := run(t, c, func(_ context.Context, m transitions.Message) error {
		if m.ID == "m-1" {
			deliveries = m.Delivery
		}
		if m.ID == "m-1" && (m.Delivery < 4 || len(order) < 19) {
			return errLater
		}
		order = append(order, m.ID) // one at a time
		return nil
	})
	n.distinct(t, 20)
	s.wantAllAcknowledged(t)
	n.stop(t)
	assert.Truef(t, len(order) == 20 && order[19] == "m-1" && deliveries >= 4,
		"consumed in the order %v, the first when it came for the %dth time", order, deliveries)
}

func TestServerRestart(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t)
	s := newStream(t, server)
	const each, restarts = 50, 3
	n := run(t, hasty(server.URL()), done)
	for range restarts {
		s.publishIDs(t, each)
		n.atLeast(t, 1)
		server.Down()
		require.NoError(t, server.Up())
		s.reconnected(t)
	}
	s.publishIDs(t, each)
	n.distinct(t, each*(restarts+1))
	s.wantAllAcknowledged(t)
}

// A message takes several times the AckWait.
func TestHeartbeatPreventsRedelivery(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t)
	s := newStream(t, server)
	c := hasty(server.URL())
	slow := func(ctx context.Context, _ transitions.Message) error {
		select {
		case <-time.After(5 * c.AckWait): // the work
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	a, b := run(t, c, slow), run(t, c, slow)
	// A stall of the machine longer than AckWait causes a redelivery.
	for ctx, before := bounded(t), 0; ; {
		s.publishIDs(t, 1)
		await.Eventually(t, "it is given", func() bool { return a.count()+b.count() > before })
		s.wantAllAcknowledged(t)
		times := a.count() + b.count() - before
		if times == 1 {
			return
		}
		before += times
		require.NoErrorf(t, ctx.Err(), "each time it was given to another, now %d times", times)
	}
}

// Messages in a stopped node's memory are redelivered at once, before AckWait.
func TestStopReleasesMessages(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t)
	s := newStream(t, server)
	s.publishIDs(t, 8)
	c := quick(server.URL())
	c.Concurrency, c.AckWait = 4, time.Hour
	n := run(t, c, func(ctx context.Context, _ transitions.Message) error {
		<-ctx.Done()
		return ctx.Err()
	})
	n.atLeast(t, 4)
	n.stop(t)
	run(t, c, done).distinct(t, 8)
	s.wantAllAcknowledged(t)
}

func TestStopWaitsForConsume(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t)
	s := newStream(t, server)
	s.publishIDs(t, 1)
	begun, finish := make(chan struct{}), make(chan struct{})
	c := quick(server.URL())
	c.AckWait = time.Hour
	n := run(t, c, func(context.Context, transitions.Message) error {
		close(begun)
		<-finish
		return nil
	})
	await.Receive(t, "the work begins", begun)
	n.cancel()
	select {
	case <-n.ended:
		t.Fatal("it did not wait")
	case <-time.After(50 * time.Millisecond):
	}
	close(finish)
	n.wait(t)
	s.wantAllAcknowledged(t) // although no time was left
}

func TestRunReportsMissingParts(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t)
	c := quick(server.URL())
	source := newSource(t, c)
	assert.ErrorIs(t, source.Run(bounded(t), done), upstream.ErrStreamNotFound, "without the stream")
	s := newStream(t, server)
	_, err := s.stream.CreateConsumer(t.Context(), upstream.ConsumerConfig{Durable: "pawl-payments",
		AckPolicy: upstream.AckNonePolicy})
	require.NoError(t, err)
	assert.ErrorContains(t, source.Run(bounded(t), done), "messages could be lost",
		"with a consumer that takes a message for done when it is sent")
	server.Down()
	assert.ErrorIs(t, source.Run(bounded(t), done), nats.ErrNoServers, "without a server")
	ended, end := context.WithCancel(t.Context())
	end()
	assert.NoError(t, source.Run(ended, done), "ended")
}

func TestDeletedConsumerIsRecreated(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t)
	s := newStream(t, server)
	s.publishIDs(t, 1)
	source := newSource(t, quick(server.URL()))
	errs := make(chan error, 1)
	got := make(chan string, 10)
	go func() {
		errs <- source.Run(bounded(t), func(_ context.Context, m transitions.Message) error {
			got <- m.ID
			return nil
		})
	}()
	await.Receive(t, "the message is given", got)
	s.wantAllAcknowledged(t)
	require.NoError(t, s.stream.DeleteConsumer(t.Context(), "pawl-payments"))
	assert.ErrorIs(t, await.Receive(t, "it says what is wrong", errs), upstream.ErrConsumerNotFound, "ended with")
	run(t, quick(server.URL()), done).distinct(t, 1)
}

// A dead message that an earlier consumer may have received is removed from the list when it is
// consumed.
func TestMessageOlderThanConsumer(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t)
	s := newStream(t, server)
	s.publishIDs(t, 1)
	deliveries := make(chan string, 2)
	n := run(t, quick(server.URL()), func(_ context.Context, m transitions.Message) error {
		deliveries <- fmt.Sprint(m.ID, " ", m.Delivery, m.Earlier)
		return nil
	})
	first := await.Receive(t, "a message is given", deliveries)
	s.publishIDs(t, 1)
	second := await.Receive(t, "a message is given", deliveries)
	assert.Truef(t, first == "m-1 1 true" && second == "m-2 1 false", "got %q, %q", first, second)
	n.stop(t)
}

func TestExistingConsumerIsNotChanged(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t)
	s := newStream(t, server)
	s.publishIDs(t, 1)
	_, err := s.stream.CreateConsumer(t.Context(), upstream.ConsumerConfig{
		Durable: "mine", FilterSubject: "payments.>", AckWait: time.Minute, MaxDeliver: 3, DeliverPolicy: upstream.DeliverNewPolicy,
	})
	require.NoError(t, err)
	var log bytes.Buffer
	c := hasty(server.URL())
	c.Durable, c.Log = "mine", slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	n := run(t, c, done)
	s.publishIDs(t, 1)
	got := n.messages(t, 1)[0]
	assert.Equal(t, "m-2", got.ID)
	n.stop(t)
	for _, want := range []string{"timeout is 1m0s, not 300ms", "after 3 deliveries",
		"unacknowledged messages is 1000, not 10000"} {
		assert.Contains(t, log.String(), want, "the log lacks")
	}
}

func TestConsumerWithOtherSubjectsIsRejected(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t)
	s := newStream(t, server)
	_, err := s.stream.CreateConsumer(t.Context(), upstream.ConsumerConfig{Durable: "mine",
		FilterSubjects: []string{"payments.b", "payments.a"}})
	require.NoError(t, err)
	c := quick(server.URL())
	c.Durable, c.Subjects = "mine", []string{"payments.a"}
	assert.ErrorContains(t, newSource(t, c).Run(bounded(t), done), `its subjects are ["payments.b" "payments.a"], not ["payments.a"]`)
	c.Subjects = []string{"payments.a", "payments.b"} // in any order
	n := run(t, c, done)
	s.publish(t, nats.Msg{Subject: "payments.b"})
	n.messages(t, 1)
}

func TestSourceConfigReportsAllErrors(t *testing.T) {
	t.Parallel()
	_, err := jetstream.New(jetstream.Config{Stream: "a.b", AckWait: time.Millisecond, Subjects: []string{""}, Keep: -1})
	require.Error(t, err, "taken")
	for _, want := range []string{"Consumer is required", `"a.b" is not a valid name of a stream`, "a subject is empty",
		"AckWait must be at least 100ms", "Keep must be from 0 to"} {
		assert.Containsf(t, err.Error(), want, "%v lacks", err)
	}
	_, err = jetstream.New(jetstream.Config{Stream: "S", Consumer: "a.b"})
	assert.ErrorContains(t, err, `"pawl-a.b" is not a valid name of a durable consumer`)
}
