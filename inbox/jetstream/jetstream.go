// Package jetstream receives the messages of a NATS JetStream stream.
//
// # Idempotency
//
// JetStream delivers at least once; the inbox processes each message once, by its id. A message is
// acknowledged after its effect is committed or it is stored as a dead message. If the node or the
// server crashes before that, the message is redelivered and recognized.
//
// The id is the header Nats-Msg-Id, which publishers set for JetStream's own deduplication. That is
// limited to the stream's duplicate window; the inbox recognizes ids for the retention period of
// its keys. A message without this header and without [Config.IDHeader] is identified by its
// position in the stream, so if it is published twice it is processed twice.
//
// A message larger than 1 MiB is stored as a dead message without its body, which remains in the
// stream.
//
// # Nodes
//
// All nodes share a durable consumer, and the server delivers each message to one of them. If that
// node crashes or sends no heartbeat within [Config.AckWait], the message is redelivered to
// another. A node only fetches messages that it can start immediately, and returns unfinished
// messages when it stops.
//
// # Order
//
// Messages are processed concurrently and failed ones are retried later, so their order is not
// preserved. A message that arrives before its instance is retried with increasing delays. Use the
// states of the workflow to enforce any other order.
//
// # Setup
//
// The publishers must create the stream. The source creates the durable consumer if absent, for all
// messages in the stream. An existing consumer is not changed, so it can be created manually to
// start at another position; it must be a pull consumer with explicit acknowledgement and the
// configured subjects. If the consumer is deleted, a new one starts at the beginning: the inbox
// recognizes messages within the retention period of its keys, but processes older ones again. Dead
// messages that are consumed then are removed from the list, as messages older than the consumer
// may have been delivered before.
//
// # Server versions
//
// NATS 2.9 supports one subject, which may contain wildcards, or none. Several subjects require
// NATS 2.10; an older server ignores them and is therefore rejected. An unused consumer that was
// created without its subjects in this way is replaced.
package jetstream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pawlhq/pawl/transitions"
)

// Source receives the messages of a stream.
type Source struct{ config Config }

// New returns a source. Run connects it.
func New(c Config) (*Source, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	return &Source{c}, nil
}

// Run receives messages until ctx ends and calls consume concurrently. It acknowledges a message if
// consume returns nil; otherwise the message is redelivered later. Run returns nil when ctx has
// ended and all calls of consume have returned.
//
// It returns an error if the server, the stream or the consumer does not exist; call Run again
// after a while. Lost connections are restored without an error.
func (s *Source) Run(ctx context.Context, consume func(context.Context, transitions.Message) error) error {
	if err := s.run(ctx, consume); err != nil && ctx.Err() == nil {
		return fmt.Errorf("jetstream: %w", err)
	}
	return nil
}

func (s *Source) run(ctx context.Context, consume func(context.Context, transitions.Message) error) error {
	conn, err := s.config.connect()
	if err != nil {
		return err
	}
	defer conn.Close() // flushes
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	durable, err := s.config.durableConsumer(ctx, js)
	if err != nil {
		return err
	}
	h := newWorkers(&s.config, durable.CachedInfo(), consume)
	defer func() { // wait for the messages in progress
		h.work.Wait()
		close(h.done)
		h.heartbeats.Wait()
	}()
	for n := h.acquire(ctx); n > 0; n = h.acquire(ctx) {
		if err := s.fetch(ctx, durable, h, n); err != nil {
			return err
		}
	}
	return nil
}

// pull bounds a fetch without messages, and so the duration of a stop.
const pull = time.Second

// fetch fetches up to n messages and starts to process them, so that none waits in memory while its
// AckWait passes.
func (s *Source) fetch(ctx context.Context, durable jetstream.Consumer, h *workers, n int) error {
	batch, err := durable.Fetch(n, jetstream.FetchMaxWait(pull))
	if err != nil {
		h.release(n)
		return s.lost(ctx, durable, err)
	}
	for m := range batch.Messages() {
		n--
		h.work.Go(func() {
			defer h.release(1)
			h.handle(ctx, m)
		})
	}
	h.release(n)
	return s.lost(ctx, durable, batch.Error())
}

// lost returns an error if a fetch failed because the consumer is gone. After other errors it
// waits.
func (s *Source) lost(ctx context.Context, durable jetstream.Consumer, err error) error {
	if err == nil || ctx.Err() != nil {
		return nil
	}
	s.config.Log.Debug("jetstream: no messages", "consumer", s.config.Consumer, "error", err)
	timeout, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	if _, err = durable.Info(timeout); errors.Is(err, jetstream.ErrConsumerNotFound) || errors.Is(err, jetstream.ErrStreamNotFound) {
		return err
	}
	if err != nil {
		select {
		case <-time.After(reconnectWait):
		case <-ctx.Done():
		}
	}
	return nil
}
