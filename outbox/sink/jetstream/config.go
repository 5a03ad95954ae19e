package jetstream

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Config says where the events go. Duplicates, MaxAge and Replicas are for a
// stream that is made; an existing one is left as it is, and what differs is
// logged.
type Config struct {
	// URL names the servers, separated by commas; "" is nats://127.0.0.1:4222.
	URL string
	// Options are for credentials, TLS and the like. They come after those that
	// the sink sets: it reconnects for ever, and holds nothing back to send it
	// later.
	Options []nats.Option
	// Stream is the stream's name; "" is PAWL.
	Stream string
	// Subject is the pattern of the subjects: tokens separated by dots, of which
	// {tenant}, {workflow}, {instance} and {type} stand for what an event has. The
	// first is fixed; {type} is last if it is there, because the dots in a type
	// separate tokens too. Other characters than letters, digits, '-' and '_' are
	// escaped ([sink.Escape]). "" is "pawl.{tenant}.{type}": the type of
	// a transition's event begins with its workflow, such as "order.pay".
	Subject string
	// Duplicates is how long the stream remembers ids; 0 is 20 minutes, or MaxAge if
	// that is less. It costs the server memory for each event of that time.
	Duplicates time.Duration
	// MaxAge is how long the stream keeps a message; 0 is for ever.
	MaxAge time.Duration
	// Replicas is how many servers keep the stream; 0 is 1.
	Replicas int
	// InFlight bounds how many messages of one Deliver wait for their
	// acknowledgement; 0 is 256.
	InFlight int
	// Timeout bounds the wait for an acknowledgement, and for an answer about the
	// stream; 0 is 5 s.
	Timeout time.Duration
	// Log is told of the connection and of an existing stream's differences; nil
	// is no log.
	Log *slog.Logger
}

// check fills in what has a default and returns all that is wrong.
func (c *Config) check() (subject, error) {
	c.URL = cmp.Or(c.URL, nats.DefaultURL)
	c.Stream = cmp.Or(c.Stream, "PAWL")
	c.Subject = cmp.Or(c.Subject, "pawl.{tenant}.{type}")
	c.Duplicates = cmp.Or(c.Duplicates, min(20*time.Minute, cmp.Or(max(c.MaxAge, 0), 20*time.Minute)))
	c.Replicas = cmp.Or(c.Replicas, 1)
	c.InFlight = cmp.Or(c.InFlight, 256)
	c.Timeout = cmp.Or(c.Timeout, 5*time.Second)
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	var wrong []error
	add := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf("jetstream: "+format, args...)) }
	if strings.ContainsAny(c.Stream, ">*. /\\\t\r\n") {
		add("%q cannot be a stream's name", c.Stream)
	}
	s, err := parseSubject(c.Subject)
	if err != nil {
		add("%w", err)
	}
	if c.Duplicates < 0 || c.MaxAge < 0 || c.Replicas < 0 || c.InFlight < 0 || c.Timeout < 0 {
		add("Duplicates, MaxAge, Replicas, InFlight and Timeout must not be negative")
	}
	if c.MaxAge > 0 && c.Duplicates > c.MaxAge {
		add("Duplicates (%v) must not be longer than MaxAge (%v)", c.Duplicates, c.MaxAge)
	}
	return s, errors.Join(wrong...)
}

// stream is the configuration of a stream that is made.
func (c *Config) stream(s subject) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: c.Stream, Description: "Events of Pawl", Subjects: []string{s.wildcard()}, Storage: jetstream.FileStorage,
		Duplicates: c.Duplicates, MaxAge: c.MaxAge, Replicas: c.Replicas,
	}
}
