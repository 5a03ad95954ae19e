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
