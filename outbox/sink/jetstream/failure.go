package jetstream

import (
	"errors"
	"net/http"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pawlhq/pawl/outbox/sink"
)

// Error codes of the server that the client has no name for.
const (
	headersTooLarge   jetstream.ErrorCode = 10097
	anotherStreamsOwn jetstream.ErrorCode = 10060 // the subject leads to another stream than expected
)

// failure says what the server's or the client's refusal of a message means.
func failure(err error) *sink.Failure {
	api, answered := errors.AsType[*jetstream.APIError](err)
	switch {
	case errors.Is(err, nats.ErrMaxPayload), errors.Is(err, jetstream.ErrStreamMessageExceedsMaximum),
		answered && api.ErrorCode == headersTooLarge:
		return sink.Fail(sink.Permanent, err, "the message is larger than the server or the stream takes: %v", err)
	case errors.Is(err, jetstream.ErrNoStreamResponse):
		return sink.Fail(sink.Unavailable, err, "no stream takes the message's subject: %v", err)
	case answered && api.ErrorCode != anotherStreamsOwn && api.Code < http.StatusInternalServerError && api.Code != http.StatusTooManyRequests:
		return sink.Fail(sink.Temporary, err, "the stream refused the message: %v", err)
	}
	return sink.Fail(sink.Unavailable, err, "the message could not be published: %v", err)
}
