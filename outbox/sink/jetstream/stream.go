package jetstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pawlhq/pawl/outbox/sink"
)

// ready ensures that the stream exists. It asks the server once, and again after a message found no
// stream.
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
		s.config.Log.Warn("jetstream: the stream differs from its configuration", "stream", existing.Name, "difference", difference)
	}
	s.known.Store(true)
	return nil
}

// ensure returns the configuration of the stream, which it creates if absent.
func (s *Sink) ensure(ctx context.Context) (jetstream.StreamConfig, error) {
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	stream, err := s.js.Stream(ctx, s.config.Stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		stream, err = s.js.CreateStream(ctx, s.config.stream(s.subject))
	}
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // another node created it meanwhile
		stream, err = s.js.Stream(ctx, s.config.Stream)
	}
	if err != nil {
		return jetstream.StreamConfig{}, fmt.Errorf("the stream %s: %w", s.config.Stream, err)
	}
	config := stream.CachedInfo().Config
	s.window.Store(int64(config.Duplicates))
	return config, nil
}

func differences(have, want jetstream.StreamConfig) []string {
	var found []string
	add := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	for _, s := range want.Subjects {
		if !slices.Contains(have.Subjects, s) {
			add("subjects %q do not include %q", have.Subjects, s)
		}
	}
	if have.Duplicates != want.Duplicates {
		add("duplicate window is %v, not %v", have.Duplicates, want.Duplicates)
	}
	if have.MaxAge != want.MaxAge {
		add("max age is %v, not %v (0 means no limit)", have.MaxAge, want.MaxAge)
	}
	if have.Storage != want.Storage {
		add("storage is %v, not %v", have.Storage, want.Storage)
	}
	if have.Replicas != want.Replicas {
		add("replicas are %d, not %d", have.Replicas, want.Replicas)
	}
	if have.Retention != want.Retention {
		add("retention is %v, not %v", have.Retention, want.Retention)
	}
	if have.NoAck {
		add("acknowledgements are disabled, so deliveries cannot succeed")
	}
	if have.Sealed {
		add("the stream is sealed, so deliveries cannot succeed")
	}
	return found
}

// Server error codes without a constant in the client.
const (
	headersTooLarge jetstream.ErrorCode = 10097
	wrongStream     jetstream.ErrorCode = 10060 // the subject belongs to another stream
)

func failure(err error) *sink.Failure {
	api, answered := errors.AsType[*jetstream.APIError](err)
	switch {
	case errors.Is(err, nats.ErrMaxPayload), errors.Is(err, jetstream.ErrStreamMessageExceedsMaximum),
		answered && api.ErrorCode == headersTooLarge:
		return sink.Fail(sink.Permanent, err, "the message is larger than the server or the stream allows: %v", err)
	case errors.Is(err, jetstream.ErrNoStreamResponse):
		return sink.Fail(sink.Unavailable, err, "no stream accepts the subject of the message: %v", err)
	case answered && api.ErrorCode != wrongStream && api.Code < http.StatusInternalServerError && api.Code != http.StatusTooManyRequests:
		return sink.Fail(sink.Temporary, err, "the stream refused the message: %v", err)
	}
	return sink.Fail(sink.Unavailable, err, "cannot publish the message: %v", err)
}
