package jetstream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// reconnectWait is between two attempts to reach a server.
const reconnectWait = 500 * time.Millisecond

// connect connects to a server that is there. Once it is connected it stays so,
// whatever becomes of the server.
func (c *Config) connect() (*nats.Conn, error) {
	return nats.Connect(c.URL, append([]nats.Option{
		nats.Name("pawl inbox " + c.Consumer),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(reconnectWait),
		nats.Timeout(c.Timeout),
		nats.IgnoreAuthErrorAbort(),
		// An acknowledgement that cannot be sent at once is dropped: the message
		// comes again, and is recognized.
		nats.ReconnectBufSize(-1),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				c.Log.Warn("jetstream: disconnected", "consumer", c.Consumer, "error", err)
			}
		}),
		nats.ReconnectHandler(func(conn *nats.Conn) {
			c.Log.Info("jetstream: connected", "consumer", c.Consumer, "server", conn.ConnectedUrlRedacted())
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			c.Log.Warn("jetstream: server error", "consumer", c.Consumer, "error", err)
		}),
	}, c.Options...)...)
}

// durableConsumer returns the durable consumer, after making it if it was
// absent.
func (c *Config) durableConsumer(ctx context.Context, js jetstream.JetStream) (jetstream.Consumer, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	if err := c.checkVersion(js.Conn().ConnectedServerVersion()); err != nil {
		return nil, err
	}
	consumer, err := js.Consumer(ctx, c.Stream, c.Durable)
	if err == nil && c.leftover(consumer.CachedInfo()) {
		if err = js.DeleteConsumer(ctx, c.Stream, c.Durable); err == nil {
			c.Log.Warn("jetstream: made the durable consumer anew, which had no subjects and had delivered nothing", "durable", c.Durable)
			err = jetstream.ErrConsumerNotFound
		}
	}
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		consumer, err = js.CreateConsumer(ctx, c.Stream, c.durable())
	}
	if errors.Is(err, jetstream.ErrConsumerExists) { // another node has made it meanwhile
		consumer, err = js.Consumer(ctx, c.Stream, c.Durable)
	}
	if err != nil {
		return nil, fmt.Errorf("the durable consumer %s of the stream %s: %w", c.Durable, c.Stream, err)
	}
	have := consumer.CachedInfo().Config
	if have.AckPolicy != jetstream.AckExplicitPolicy {
		return nil, fmt.Errorf("the durable consumer %s of the stream %s: its acknowledgement is %q, so messages could be lost; it must be %q",
			c.Durable, c.Stream, have.AckPolicy, jetstream.AckExplicitPolicy)
	}
	subjects, sorted := subjectsOf(have), func(list []string) []string { return slices.Sorted(slices.Values(list)) }
	if len(c.Subjects) > 0 && !slices.Equal(sorted(subjects), sorted(c.Subjects)) {
		// Others would be consumed as this consumer's, or this tenant's.
		return nil, fmt.Errorf("the durable consumer %s of the stream %s: its subjects are %q, not %q", c.Durable, c.Stream, subjects, c.Subjects)
	}
	for _, difference := range differences(have, c.durable()) {
		c.Log.Warn("jetstream: the durable consumer is not as it would be made", "durable", c.Durable, "difference", difference)
	}
	return consumer, nil
}

// checkVersion refuses a server that cannot filter by several subjects. One before 2.10 would make a consumer without any.
func (c *Config) checkVersion(version string) error {
	var major, minor int
	if n, _ := fmt.Sscanf(version, "%d.%d", &major, &minor); n == 2 && len(c.Subjects) > 1 && (major < 2 || major == 2 && minor < 10) {
		return fmt.Errorf("the server has version %s, and several subjects need NATS 2.10 or newer: name one subject, which may have "+
			"wildcards, or use a consumer for each", version)
	}
	return nil
}

// leftover reports whether a consumer is one of Pawl's that was made without its subjects, by a server before 2.10, and was never used.
func (c *Config) leftover(info *jetstream.ConsumerInfo) bool {
	return len(c.Subjects) > 0 && len(subjectsOf(info.Config)) == 0 && info.Config.Description == c.durable().Description &&
		info.Delivered.Consumer == 0
}

// differences says what about a consumer is not as it would be made, as far as
// it matters to what is consumed.
func differences(have, want jetstream.ConsumerConfig) []string {
	var found []string
	add := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	if have.AckWait != want.AckWait {
		add("it waits %v for an acknowledgement, not %v", have.AckWait, want.AckWait)
	}
	if have.MaxAckPending != want.MaxAckPending {
		add("it lets %d messages be unfinished, not %d", have.MaxAckPending, want.MaxAckPending)
	}
	if have.MaxDeliver > 0 {
		add("it gives a message up after %d deliveries, and nobody is told", have.MaxDeliver)
	}
	if have.HeadersOnly {
		add("it delivers headers without bodies")
	}
	return found
}

// subjectsOf are those of a consumer; none: all of its stream.
func subjectsOf(have jetstream.ConsumerConfig) []string {
	if have.FilterSubject != "" {
		return []string{have.FilterSubject}
	}
	return have.FilterSubjects
}

// patience is how long a consumer waits for a sign of life about a message.
func patience(have jetstream.ConsumerConfig) time.Duration {
	if len(have.BackOff) > 0 {
		return slices.Min(have.BackOff) // replaces AckWait
	}
	return have.AckWait
}
