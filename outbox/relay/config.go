package relay

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"regexp"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/internal/kernel/outbox"
	"github.com/pawlhq/pawl/outbox/sink"
	"github.com/pawlhq/pawl/tracing"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Config is what a relay needs. All of it is required but what says otherwise.
type Config struct {
	Pool   *pgxpool.Pool // must not be one that others can use up: leases are prolonged with it
	Events *outbox.Table // the log and its events
	Feed   Feed          // of the same log
	Node   string        // who holds the leases: no other relay's, also not an earlier one's

	// Workflows are all versions of those that are known here: the filters of the sinks
	// are checked against them. nil: they are not.
	Workflows []*workflow.Workflow

	// Peers are the other nodes. nil: they find out at their next poll that they can take
	// over a sink.
	Peers Peers

	Log *slog.Logger

	// Tracer is told of deliveries. nil: none.
	Tracer tracing.Tracer

	// Every is how often the relay polls how its sinks stand when it has no other reason
	// to. 0 is 1 s; at least 100 ms.
	Every time.Duration

	// Lease is how long a sink is left alone after its node has died. Each poll
	// prolongs it. 0 is three times Every, and at least 5 s; otherwise at least twice.
	Lease time.Duration

	Sinks []Sink
}

// Feed reads a tenant's log after a position, as it grows.
type Feed interface {
	Follow(tenant string, after int64) transitions.Follower
}

// Peers are told that a sink can be taken over, so that each calls its Wake. Sinks must
// not block.
type Peers interface{ Sinks() }

// Sink is a receiver and how it is to be served. The name and the sink are
// required.
type Sink struct {
	// Name is the sink's for good: its cursors are found by it. 1 to 64 of a-z, 0-9,
	// '-', '_' and '.'; it begins with a letter or a digit.
	Name string

	// To is where the events go. The relay closes it when it stops.
	To sink.Sink

	// Tenants are those whose events it gets; nil: all, also those to come. What was
	// set aside of one that is no longer among them stays there, undelivered.
	Tenants []string

	// Filter says which events it gets, such as those of a workflow, a business key or
	// the values of declared attributes; empty: all. The others are passed over for good.
	// What it names must be known to the node: to one that does not know the workflow it
	// is a mistake of the configuration.
	Filter transitions.EventFilter

	// Wants says which of these it gets, where Filter cannot; nil: all of them. It is
	// called from several goroutines.
	Wants func(*transitions.Event) bool

	// FromNow lets a sink that the database does not know yet get only what is
	// committed after it became known, of every tenant, instead of the oldest events
	// that are there. That also holds for tenants that come into being later, and for
	// those that are added to Tenants later. Without it those are read from the
	// beginning.
	FromNow bool

	// Batch is how many events are handed over in one call, at most; 0 is 256. Calls
	// are as large only when there is a backlog.
	Batch int

	// Calls is how many are made at once, for different instances; 0 is 4. A
	// receiver that takes one event after the other, such as a webhook, needs more
	// of them, and a smaller Batch.
	Calls int

	// Timeout bounds a call; 0 is 2 min. One that the sink does not end even some
	// seconds later keeps its place among the Calls, and its instances wait until it
	// has ended; whatever it says then, its events are delivered again. It is logged,
	// and counts as an attempt of the first event of each instance. Everything else
	// goes on, so does a pause; after it, or on another node, these events are tried
	// although the call may still be under way.
	Timeout time.Duration

	// Retry says how often and when an event is tried again. Attempts: 0 is 15.
	// First: 0 is 500 ms. Max: 0 is 1 h. So an event is given up after about an hour. No
	// wait is longer than half the time for which the receiver drops repetitions
	// ([sink.Deduplicator]): with the 20 minutes of a JetStream stream, after about 25.
	// An attempt that fails while the receiver takes nothing is not counted. Final is
	// not used: a sink says itself what is final.
	Retry workflow.Retry

	// Exhausted says what becomes of an event that no attempt could deliver.
	Exhausted Exhausted

	// Window is how many events are in memory at once, about, and so how many are
	// repeated after a crash, at most; 0 is 8192.
	Window int
}

// Exhausted is what becomes of an event whose attempts are used up, or that no
// attempt can deliver.
type Exhausted int

const (
	// Park makes it a dead letter. Later events of its instance go on without it.
	Park Exhausted = iota
	// HoldInstance makes it a dead letter, and later events of its instance wait
	// for it to be redriven or skipped, so that their order holds.
	HoldInstance
	// Block goes on trying. The cursor of its tenant does not pass it, so after a
	// while nothing of that tenant is delivered. Other tenants go on, however many
	// are blocked; when there are many, what was delivered behind such an event is
	// repeated once when it has arrived.
	Block
)

// CheckName refuses a name that cannot be a sink's.
func CheckName(name string) error {
	if !nameForm.MatchString(name) {
		return fmt.Errorf("the sink's name %q is not 1 to 64 of a-z, 0-9, '-', '_' and '.', beginning with a letter or a digit", name)
	}
	return nil
}

var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// withDefaults checks the configuration and returns a complete copy.
func (c Config) withDefaults() (Config, error) {
	var wrong []error
	add := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf("relay: "+format, args...)) }
	if c.Pool == nil || c.Events == nil || c.Feed == nil || c.Node == "" || c.Log == nil {
		add("Pool, Events, Feed, Node and Log are required")
	}
	c.Every = cmp.Or(c.Every, time.Second)
	if c.Every < 100*time.Millisecond {
		add("Every is less than 100 ms")
	}
	c.Lease = cmp.Or(c.Lease, max(3*c.Every, 5*time.Second))
	if c.Lease < 2*c.Every {
		add("Lease is less than %s, which is two polls", 2*c.Every)
	}
	c.Sinks = append([]Sink(nil), c.Sinks...)
	names := map[string]bool{}
	for i := range c.Sinks {
		s := &c.Sinks[i]
		s.Batch = cmp.Or(s.Batch, 256)
		s.Calls = cmp.Or(s.Calls, 4)
		s.Timeout = cmp.Or(s.Timeout, 2*time.Minute)
		s.Window = cmp.Or(s.Window, 8192)
		s.Retry.Attempts = cmp.Or(s.Retry.Attempts, 15)
		s.Retry.First = cmp.Or(s.Retry.First, 500*time.Millisecond)
		s.Retry.Max = cmp.Or(s.Retry.Max, max(time.Hour, s.Retry.First))
		if err := CheckName(s.Name); err != nil {
			add("%w", err)
		}
		switch {
		case names[s.Name]:
			add("there are two sinks %q", s.Name)
		case s.To == nil:
			add("sink %q has no receiver", s.Name)
		case min(s.Batch, s.Calls, s.Window, s.Retry.Attempts) < 0 || min(s.Timeout, s.Retry.First) < 0 || s.Retry.Max < s.Retry.First:
			add("sink %q has a negative number, or a Retry.Max that is less than its First", s.Name)
		case s.Exhausted < Park || s.Exhausted > Block:
			add("sink %q has an unknown Exhausted", s.Name)
		}
		if err := s.checkFilter(c.Workflows); err != nil {
			add("the filter of sink %q: %w", s.Name, err)
		}
		for _, tenant := range s.Tenants {
			if err := transitions.CheckTenant(tenant); err != nil || tenant == "" {
				add("sink %q is for a tenant %q, which cannot be", s.Name, tenant)
			}
		}
		names[s.Name] = true
	}
	return c, errors.Join(wrong...)
}

// checkFilter refuses a filter that no event can pass.
func (s *Sink) checkFilter(known []*workflow.Workflow) error {
	if slices.Contains(s.Filter.Types, "") || slices.Contains(s.Filter.States, "") {
		return errors.New("a type or a state of it is empty")
	}
	if known == nil {
		return s.Filter.Check(nil)
	}
	return s.Filter.CheckKnown(known)
}

// serves reports whether the sink gets a tenant's events.
func (s *Sink) serves(tenant string) bool {
	return s.Tenants == nil || slices.Contains(s.Tenants, tenant)
}

// policy is how a flow serves the sink.
func (s *Sink) policy() policy {
	return policy{exhausted: s.Exhausted, attempts: s.Retry.Attempts, batch: s.Batch, calls: s.Calls, window: s.Window, maxAside: maxAside,
		backoff: func(failures int) time.Duration { return rand.N(s.ceiling(max(failures, 1)) + 1) },
	}
}

// ceiling is the longest wait before an event is tried again. What has arrived, though
// the sink does not know it, is tried again while its receiver still knows it.
func (s *Sink) ceiling(failures int) time.Duration {
	ceiling := s.Retry.Ceiling(failures)
	if d, ok := s.To.(sink.Deduplicator); ok {
		if window := d.DuplicateWindow(); window > 0 {
			ceiling = min(ceiling, window/2)
		}
	}
	return ceiling
}

// maxAside is how many instances of a sink may be aside, about.
const maxAside = 100_000
