package jetstream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pawlhq/pawl/transitions"
)

// Source brings in the messages of a stream.
type Source struct{ config Config }

// New prepares a source. It connects when it is run.
func New(c Config) (*Source, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	return &Source{c}, nil
}

// Run receives messages until ctx ends, which is no error, and gives each to
// consume, several at once. When consume returns nil the message is
// acknowledged; after an error it comes again later. Run returns when consume
// has returned for all of them.
//
// An error says that there is no server, no such stream, or no consumer any
// more; Run is to be called again then, after a while. A connection that was
// lost is none: it is restored.
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
	defer conn.Close() // sends what is still to be sent
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	durable, err := s.config.durableConsumer(ctx, js)
	if err != nil {
		return err
	}
	h := newHands(&s.config, durable.CachedInfo(), consume)
	defer h.stop()
	for n := h.free(ctx); n > 0; n = h.free(ctx) {
		if err := s.fetch(ctx, durable, h, n); err != nil {
			return err
		}
	}
	return nil
}

// pull is how long the server keeps a request for messages that are not there
// yet. It is what stopping may take.
const pull = time.Second

// fetch asks for as many messages as there are free hands, and puts them into
// these. So no message waits in this node's memory while its time runs.
func (s *Source) fetch(ctx context.Context, durable jetstream.Consumer, h *hands, n int) error {
	batch, err := durable.Fetch(n, jetstream.FetchMaxWait(pull))
	if err != nil {
		h.release(n)
		return s.lost(ctx, durable, err)
	}
	for m := range batch.Messages() {
		n--
		h.take(ctx, m)
	}
	h.release(n)
	return s.lost(ctx, durable, batch.Error())
}

// lost says whether messages could not be fetched because the consumer is gone,
// rather than the server for a while; for that it waits.
func (s *Source) lost(ctx context.Context, durable jetstream.Consumer, err error) error {
	if err == nil || ctx.Err() != nil {
		return nil
	}
	s.config.Log.Debug("jetstream: no messages", "consumer", s.config.Consumer, "error", err)
	timeout, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	_, err = durable.Info(timeout)
	if errors.Is(err, jetstream.ErrConsumerNotFound) || errors.Is(err, jetstream.ErrStreamNotFound) {
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
