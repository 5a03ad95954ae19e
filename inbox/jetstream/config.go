package jetstream

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Config says which messages come in, and as whose. The stream and the consumer
// are required.
type Config struct {
	// URL names the servers, separated by commas; "" is nats://127.0.0.1:4222.
	URL string
	// Options are for credentials, TLS and the like. They come after those that
	// the source sets: it reconnects for ever.
	Options []nats.Option
	// Stream is the stream's name.
	Stream string
	// Subjects restricts the messages to these, which may have wildcards; nil: all
	// of the stream, or those of a durable consumer that is there.
	Subjects []string
	// Durable is the name of the durable consumer, which all nodes share and nobody
	// else; "" is "pawl-", a Tenant that is not "default" and "-", and Consumer.
	Durable string

	// Consumer is who consumes the messages, as the workflows name it.
	Consumer string
	// Tenant is whose the messages are; "" is "default". What separates tenants in a
	// stream is the subject: each has a source of its own.
	Tenant string
	// IDHeader names a header with the sender's id, for messages without
	// Nats-Msg-Id; "" is none.
	IDHeader string
	// TypeHeader names the header that says what a message is; "" is "ce-type", as
	// CloudEvents have it. Without the header it is the subject.
	TypeHeader string

	// Keep is how long messages are stored as they were received, with their headers, for operators to read. Zero stores none.
	Keep time.Duration

	// Concurrency is how many messages this node works on at once, and has in its
	// memory; 0 is 32.
	Concurrency int
	// AckWait is after what time without a sign of life a message is given to
	// another node; 0 is 30 s. It is for a durable consumer that is made; at least
	// 100 ms.
	AckWait time.Duration
	// Waiting is how many messages may be unfinished on all nodes together: in hand,
	// or waiting to come again. When there are so many the server delivers nothing
	// new, also not what they wait for. 0 is 10,000. It is for a durable consumer
	// that is made.
	Waiting int
	// Retry says when a message that could not be consumed for now comes again: at random before First, doubled with each delivery up to
	// Max. First: 0 is 500 ms. Max: 0 is 1 min, or First where that is longer. The server delivers what comes again before what is new, so
	// Max also says how much of the nodes' time the messages that wait may take: n of them come 2 n / Max times a second, and where the
	// nodes cannot take so many, what these wait for does not come. The rest is not used: whoever consumes says when there have been
	// enough attempts.
	Retry workflow.Retry
	// Timeout bounds the wait for one answer of the server; 0 is 5 s.
	Timeout time.Duration
	// Log is told of the connection and of messages that come again; nil is no log.
	Log *slog.Logger
}

const (
	minAckWait = 100 * time.Millisecond
	// maxName bounds the stream's name, which is a part of some ids.
	maxName = 160
)

// check fills in what has a default and returns all that is wrong.
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
		add("the consumer is missing")
	}
	named := func(what, name string) {
		if name == "" || len(name) > maxName || strings.ContainsAny(name, ">*. /\\\t\r\n") {
			add("%q cannot be the name of a %s", name, what)
		}
	}
	named("stream", c.Stream)
	named("durable consumer", c.Durable)
	if slices.Contains(c.Subjects, "") {
		add("a subject is empty")
	}
	if c.AckWait < minAckWait || c.Concurrency < 0 || c.Waiting < 0 || c.Timeout < 0 || c.Retry.First < 0 || c.Retry.Max < c.Retry.First {
		add("AckWait must be at least %s, Concurrency, Waiting, Timeout and Retry not negative,"+
			" and Retry.Max not less than Retry.First", minAckWait)
	}
	if c.Keep < 0 || c.Keep > transitions.MaxKeep {
		add("Keep must be from 0 to %s", transitions.MaxKeep)
	}
	return errors.Join(wrong...)
}

// durable is the configuration of a durable consumer that is made.
func (c *Config) durable() jetstream.ConsumerConfig {
	config := jetstream.ConsumerConfig{
		Durable: c.Durable, Description: "Inbox of Pawl: " + c.Consumer,
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: c.AckWait, MaxAckPending: c.Waiting, MaxDeliver: -1,
	}
	if len(c.Subjects) == 1 {
		config.FilterSubject = c.Subjects[0] // servers before 2.10 know no list
	} else {
		config.FilterSubjects = c.Subjects
	}
	return config
}

// delay is how long a message waits for its next delivery, at random.
func (c *Config) delay(deliveries int) time.Duration {
	return rand.N(c.Retry.Ceiling(max(deliveries, 1))) + 1
}
