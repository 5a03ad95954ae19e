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

const reconnectWait = 500 * time.Millisecond

func (c *Config) connect() (*nats.Conn, error) {
	return nats.Connect(c.URL, append([]nats.Option{
		nats.Name("pawl inbox " + c.Consumer),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(reconnectWait),
		nats.Timeout(c.Timeout),
		nats.IgnoreAuthErrorAbort(),
		// Drop acknowledgements that cannot be sent at once: the message is redelivered and
		// recognized.
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

// durableConsumer returns the durable consumer, which it creates if absent.
func (c *Config) durableConsumer(ctx context.Context, js jetstream.JetStream) (jetstream.Consumer, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	if err := c.checkVersion(js.Conn().ConnectedServerVersion()); err != nil {
		return nil, err
	}
	consumer, err := js.Consumer(ctx, c.Stream, c.Durable)
	if err == nil && c.leftover(consumer.CachedInfo()) {
		if err = js.DeleteConsumer(ctx, c.Stream, c.Durable); err == nil {
			c.Log.Warn("jetstream: replaced the unused durable consumer, which had no subjects", "durable", c.Durable)
			err = jetstream.ErrConsumerNotFound
		}
	}
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		consumer, err = js.CreateConsumer(ctx, c.Stream, c.durable())
	}
	if errors.Is(err, jetstream.ErrConsumerExists) { // another node created it meanwhile
		consumer, err = js.Consumer(ctx, c.Stream, c.Durable)
	}
	if err != nil {
		return nil, fmt.Errorf("the durable consumer %s of the stream %s: %w", c.Durable, c.Stream, err)
	}
	have := consumer.CachedInfo().Config
	if have.AckPolicy != jetstream.AckExplicitPolicy {
		return nil, fmt.Errorf("the durable consumer %s of the stream %s: its acknowledgement policy is %q instead of %q, so messages could be lost",
			c.Durable, c.Stream, have.AckPolicy, jetstream.AckExplicitPolicy)
	}
	subjects, sorted := subjectsOf(have), func(list []string) []string { return slices.Sorted(slices.Values(list)) }
	if len(c.Subjects) > 0 && !slices.Equal(sorted(subjects), sorted(c.Subjects)) {
		// Messages of other consumers or tenants would be consumed.
		return nil, fmt.Errorf("the durable consumer %s of the stream %s: its subjects are %q, not %q", c.Durable, c.Stream, subjects, c.Subjects)
	}
	for _, difference := range differences(have, c.durable()) {
		c.Log.Warn("jetstream: the durable consumer differs from its configuration", "durable", c.Durable, "difference", difference)
	}
	return consumer, nil
}

// checkVersion rejects several subjects for servers before 2.10, which would ignore them.
func (c *Config) checkVersion(version string) error {
	var major, minor int
	if n, _ := fmt.Sscanf(version, "%d.%d", &major, &minor); n == 2 && len(c.Subjects) > 1 && (major < 2 || major == 2 && minor < 10) {
		return fmt.Errorf("several subjects require NATS 2.10, but the server has version %s: use one subject with wildcards, "+
			"or a consumer for each", version)
	}
	return nil
}

// leftover reports whether an unused consumer was created without its subjects by a server before
// 2.10.
func (c *Config) leftover(info *jetstream.ConsumerInfo) bool {
	return len(c.Subjects) > 0 && len(subjectsOf(info.Config)) == 0 && info.Config.Description == c.durable().Description &&
		info.Delivered.Consumer == 0
}

func differences(have, want jetstream.ConsumerConfig) []string {
	var found []string
	add := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	if have.AckWait != want.AckWait {
		add("acknowledgement timeout is %v, not %v", have.AckWait, want.AckWait)
	}
	if have.MaxAckPending != want.MaxAckPending {
		add("limit of unacknowledged messages is %d, not %d", have.MaxAckPending, want.MaxAckPending)
	}
	if have.MaxDeliver > 0 {
		add("messages are dropped after %d deliveries", have.MaxDeliver)
	}
	if have.HeadersOnly {
		add("messages have no bodies")
	}
	return found
}

// subjectsOf returns the subjects of a consumer, or nil for all of its stream.
func subjectsOf(have jetstream.ConsumerConfig) []string {
	if have.FilterSubject != "" {
		return []string{have.FilterSubject}
	}
	return have.FilterSubjects
}
