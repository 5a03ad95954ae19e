package jetstream

import (
	"errors"
	"net/http"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pawlhq/pawl/outbox/sink"
)

// Server error codes without a constant in the client.
const (
	headersTooLarge jetstream.ErrorCode = 10097
	wrongStream     jetstream.ErrorCode = 10060 // the subject belongs to another stream
)

// failure maps an error of the server or the client to a failure.
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
