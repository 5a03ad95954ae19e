package jetstream

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go/jetstream"
)

// ready makes sure that the stream is there. It asks the server once, and again
// after a message found no stream.
func (s *Sink) ready(ctx context.Context) error {
	if s.known.Load() {
		return nil
	}
	select {
	case s.asking <- struct{}{}:
		defer func() { <-s.asking }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if s.known.Load() {
		return nil
	}
	existing, err := s.ensure(ctx)
	if err != nil {
		return err
	}
	for _, difference := range differences(existing, s.config.stream(s.subject)) {
		s.config.Log.Warn("jetstream: the stream is not as it would be made", "stream", existing.Name, "difference", difference)
	}
	s.known.Store(true)
	return nil
}

// ensure returns the stream's configuration, after making the stream if it was
// absent.
func (s *Sink) ensure(ctx context.Context) (jetstream.StreamConfig, error) {
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	stream, err := s.js.Stream(ctx, s.config.Stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		stream, err = s.js.CreateStream(ctx, s.config.stream(s.subject))
	}
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // another node has made it meanwhile
		stream, err = s.js.Stream(ctx, s.config.Stream)
	}
	if err != nil {
		return jetstream.StreamConfig{}, fmt.Errorf("the stream %s: %w", s.config.Stream, err)
	}
	config := stream.CachedInfo().Config
	s.window.Store(int64(config.Duplicates))
	return config, nil
}

// differences says what about a stream is not as it would be made, as far as it
// matters to what is delivered.
func differences(have, want jetstream.StreamConfig) []string {
	var found []string
	add := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	for _, s := range want.Subjects {
		if !slices.Contains(have.Subjects, s) {
			add("its subjects are %q, without %q", have.Subjects, s)
		}
	}
	if have.Duplicates != want.Duplicates {
		add("it remembers ids for %v, not %v", have.Duplicates, want.Duplicates)
	}
	if have.MaxAge != want.MaxAge {
		add("it keeps messages for %v, not %v (0 is for ever)", have.MaxAge, want.MaxAge)
	}
	if have.Storage != want.Storage {
		add("its storage is %v, not %v", have.Storage, want.Storage)
	}
	if have.Replicas != want.Replicas {
		add("it has %d replicas, not %d", have.Replicas, want.Replicas)
	}
	if have.Retention != want.Retention {
		add("its retention is %v, not %v", have.Retention, want.Retention)
	}
	if have.NoAck {
		add("it acknowledges nothing, so no delivery will ever succeed")
	}
	if have.Sealed {
		add("it is sealed, so no delivery will ever succeed")
	}
	return found
}
