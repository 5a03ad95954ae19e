package jetstream

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pawlhq/pawl/internal/kernel/backoff"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Config configures a source. Stream and Consumer are required.
type Config struct {
	URL     string        // comma-separated servers; defaults to nats://127.0.0.1:4222
	Options []nats.Option // credentials, TLS and the like; follow the source's own options, which reconnect without limit
	Stream  string        // name of the stream
	// Subjects restricts the messages and may contain wildcards. Nil means all of the stream, or those of an existing
	// durable consumer.
	Subjects []string
	// Durable is the name of the durable consumer, which only the nodes of one installation may share. Defaults to
	// "pawl-", Tenant and "-" unless Tenant is "default", and Consumer.
	Durable string

	Consumer string // name of the consumer in the workflows
	// Tenant is the tenant of all messages. Defaults to "default". Tenants that share a stream need separate subjects,
	// and a source each.
	Tenant   string
	IDHeader string // header with the message id, for messages without Nats-Msg-Id; optional
	// TypeHeader names the header with the message type. Defaults to "ce-type", as in CloudEvents. Messages without it
	// have their subject as type.
	TypeHeader string

	// Keep is how long messages are stored as they were received, with their headers, for operators. Zero stores none.
	Keep time.Duration

	Concurrency int // maximum number of messages in progress on this node; defaults to 32
	// AckWait is the time without a heartbeat after which a message is redelivered to another node. Defaults to 30
	// seconds; at least 100 ms. Like Waiting, it only applies to a durable consumer that the source creates.
	AckWait time.Duration
	// Waiting is the maximum number of unacknowledged messages of all nodes, in progress or awaiting redelivery. At
	// this limit the server delivers no new messages, including those that others depend on. Defaults to 10,000.
	Waiting int
	// Retry sets the delays of redeliveries: randomized up to First, doubled with each delivery up to Max. First
	// defaults to 500 ms, Max to 1 minute or First if that is longer. Redeliveries precede new messages, so n failing
	// messages arrive 2n/Max times per second and can occupy all nodes if Max is too short. Other fields are ignored.
	Retry   workflow.Retry
	Timeout time.Duration // of a response of the server; defaults to 5 seconds
	Log     *slog.Logger  // connection events and redeliveries; optional
}

const (
	minAckWait = 100 * time.Millisecond
	// maxName bounds the length of the stream's name, which is part of some ids.
	maxName = 160
)

func (c *Config) check() error {
	c.URL = cmp.Or(c.URL, nats.DefaultURL)
	c.Tenant = cmp.Or(c.Tenant, transitions.DefaultTenant)
	if c.Durable == "" && c.Tenant != transitions.DefaultTenant {
		c.Durable = "pawl-" + c.Tenant + "-" + c.Consumer
	}
	c.Durable = cmp.Or(c.Durable, "pawl-"+c.Consumer)
	c.TypeHeader = cmp.Or(c.TypeHeader, "ce-type")
	c.Concurrency = cmp.Or(c.Concurrency, 32)
	c.Waiting = cmp.Or(c.Waiting, 10_000)
	c.AckWait = cmp.Or(c.AckWait, 30*time.Second)
	c.Retry.First = cmp.Or(c.Retry.First, 500*time.Millisecond)
	c.Retry.Max = cmp.Or(c.Retry.Max, max(c.Retry.First, time.Minute))
	c.Timeout = cmp.Or(c.Timeout, 5*time.Second)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Subjects, c.Options = slices.Clone(c.Subjects), slices.Clone(c.Options)

	var wrong []error
	add := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf("jetstream: "+format, args...)) }
	if c.Consumer == "" {
		add("Consumer is required")
	}
	named := func(what, name string) {
		if name == "" || len(name) > maxName || strings.ContainsAny(name, ">*. /\\\t\r\n") {
			add("%q is not a valid name of a %s", name, what)
		}
	}
	named("stream", c.Stream)
	named("durable consumer", c.Durable)
	if slices.Contains(c.Subjects, "") {
		add("a subject is empty")
	}
	if c.AckWait < minAckWait || c.Concurrency < 0 || c.Waiting < 0 || c.Timeout < 0 || c.Retry.First < 0 || c.Retry.Max < c.Retry.First {
		add("AckWait must be at least %s, Concurrency, Waiting, Timeout and Retry must not be negative,"+
			" and Retry.Max must be at least Retry.First", minAckWait)
	}
	if c.Keep < 0 || c.Keep > transitions.MaxKeep {
		add("Keep must be from 0 to %s", transitions.MaxKeep)
	}
	return errors.Join(wrong...)
}

func (c *Config) durable() jetstream.ConsumerConfig {
	config := jetstream.ConsumerConfig{
		Durable: c.Durable, Description: "Inbox of Pawl: " + c.Consumer,
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: c.AckWait, MaxAckPending: c.Waiting, MaxDeliver: -1,
	}
	if len(c.Subjects) == 1 {
		config.FilterSubject = c.Subjects[0] // servers before 2.10 do not support lists
	} else {
		config.FilterSubjects = c.Subjects
	}
	return config
}

func (c *Config) delay(deliveries int) time.Duration {
	return backoff.Delay(c.Retry, deliveries) + 1
}
