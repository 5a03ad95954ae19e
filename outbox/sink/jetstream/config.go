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

// Config configures a JetStream sink. Duplicates, MaxAge and Replicas apply to a stream that the
// sink creates. Existing streams are not changed; differences are logged.
type Config struct {
	URL     string        // comma-separated servers; defaults to nats://127.0.0.1:4222
	Options []nats.Option // credentials, TLS and the like; follow the sink's own options, which reconnect without limit
	Stream  string        // name of the stream; defaults to PAWL
	// Subject is the pattern of subjects: tokens separated by dots, where {tenant}, {workflow}, {instance} and {type} are
	// replaced. The first token must be fixed. {type} must be last, as types contain dots. Characters other than letters,
	// digits, '-' and '_' are escaped ([sink.Escape]). Defaults to "pawl.{tenant}.{type}"; the type of a transition's
	// event begins with its workflow, as in "order.pay".
	Subject string
	// Duplicates is the duplicate window of the stream, which costs server memory per event. Defaults to 20 minutes, or
	// to MaxAge if that is shorter.
	Duplicates time.Duration
	MaxAge     time.Duration // retention period of the stream; zero means no limit
	Replicas   int           // defaults to 1
	InFlight   int           // maximum number of unacknowledged messages of one Deliver; defaults to 256
	Timeout    time.Duration // of acknowledgements and stream requests; defaults to 5 seconds
	Log        *slog.Logger  // connection events and differences of an existing stream; optional
}

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
		add("%q is not a valid stream name", c.Stream)
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

func (c *Config) stream(s subject) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: c.Stream, Description: "Events of Pawl", Subjects: []string{s.wildcard()}, Storage: jetstream.FileStorage,
		Duplicates: c.Duplicates, MaxAge: c.MaxAge, Replicas: c.Replicas,
	}
}
