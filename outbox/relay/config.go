package relay

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/internal/kernel/backoff"
	"github.com/pawlhq/pawl/internal/kernel/outbox"
	"github.com/pawlhq/pawl/outbox/sink"
	"github.com/pawlhq/pawl/tracing"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Config configures a relay. All fields are required unless noted.
type Config struct {
	Pool   *pgxpool.Pool // must not be exhausted by others: it renews the leases
	Events *outbox.Table // the log and its events
	Feed   Feed          // of the same log
	Node   string        // identifies the lease holder; unique across nodes and restarts
	Log    *slog.Logger
	Tracer tracing.Tracer // traces deliveries; optional
	Peers  Peers          // notifies other nodes of free sinks; if nil, they find out at their next poll

	// Workflows are the known versions of the workflows that filters are validated against. Nil disables this
	// validation.
	Workflows []*workflow.Workflow

	// Every is the poll interval. Defaults to 1 second; at least 100 ms.
	Every time.Duration

	// Lease is the time after which another node takes over the sinks of a dead one. Each poll renews it. Defaults to
	// three times Every, at least 5 seconds; must be at least twice Every.
	Lease time.Duration

	Sinks []Sink
}

// Feed follows a tenant's log from a position.
type Feed interface {
	Follow(tenant string, after int64) transitions.Follower
}

// Peers wakes the relays of other nodes when a sink becomes free. Sinks must not block.
type Peers interface{ Sinks() }

// Sink configures the delivery to a receiver. Name and To are required.
type Sink struct {
	// Name identifies the sink and its cursors; it must not change. 1 to 64 characters of a-z, 0-9,
	// '-', '_' and '.', starting with a letter or a digit.
	Name string

	To sink.Sink // receives the events; the relay closes it when it stops

	// Tenants restricts the sink to these tenants. Nil means all, including future ones. Deferred events of a tenant
	// that is removed from the list stay undelivered.
	Tenants []string

	// Filter selects events. The zero value selects all. Events that do not match are skipped permanently. An unknown
	// workflow is a configuration error.
	Filter transitions.EventFilter

	// Wants selects among these where Filter cannot. Nil selects all. It must be safe for concurrent use.
	Wants func(*transitions.Event) bool

	// FromNow starts a new sink at the current end of the log instead of the oldest stored event, also for tenants that
	// are created, or added to Tenants, later.
	FromNow bool

	// Batch is the maximum number of events in a call. Defaults to 256. Calls only reach this size with a backlog.
	Batch int

	// Calls is the maximum number of concurrent calls, for different instances. Defaults to 4. Receivers that take
	// single events, such as webhooks, need more calls and a smaller Batch.
	Calls int

	// Timeout bounds a call. Defaults to 2 minutes. A call that does not return within a few seconds after its timeout
	// is logged, counts as a failed attempt of the first event of each of its instances, and keeps its slot. Its
	// instances wait until it returns or the sink is paused, and its events are delivered again.
	Timeout time.Duration

	// Retry is the retry policy of an event. Attempts defaults to 15, First to 500 ms, Max to 1 hour; events are then
	// parked after about an hour. No backoff exceeds half of the receiver's duplicate window ([sink.Deduplicator]).
	// Attempts during a failure of the whole receiver are not counted. Final is ignored: sinks return [sink.Permanent].
	Retry workflow.Retry

	Exhausted Exhausted // policy for events that no attempt could deliver

	// Window is the approximate number of events in memory, and so of events that are repeated after a crash. Defaults
	// to 8192.
	Window int
}

// Exhausted is the policy for events that are out of attempts or undeliverable.
type Exhausted int

const (
	// Park turns the event into a dead letter. Later events of its instance are delivered.
	Park Exhausted = iota
	// HoldInstance turns the event into a dead letter. Later events of its instance wait until an operator handles it.
	HoldInstance
	// Block retries without limit. The cursor of the tenant does not pass the event, so delivery for this tenant
	// eventually stops. If many tenants are blocked, events behind the blocking one are repeated once after it arrives.
	Block
)

// CheckName validates the name of a sink.
func CheckName(name string) error {
	if !nameForm.MatchString(name) {
		return fmt.Errorf("sink name %q is not 1 to 64 characters of a-z, 0-9, '-', '_' and '.', starting with a letter or a digit", name)
	}
	return nil
}

var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

func (c Config) withDefaults() (Config, error) {
	var wrong []error
	add := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf("relay: "+format, args...)) }
	if c.Pool == nil || c.Events == nil || c.Feed == nil || c.Node == "" || c.Log == nil {
		add("Pool, Events, Feed, Node and Log are required")
	}
	c.Every = cmp.Or(c.Every, time.Second)
	if c.Every < 100*time.Millisecond {
		add("Every is shorter than 100 ms")
	}
	c.Lease = cmp.Or(c.Lease, max(3*c.Every, 5*time.Second))
	if c.Lease < 2*c.Every {
		add("Lease is shorter than %s (twice Every)", 2*c.Every)
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
			add("duplicate sink %q", s.Name)
		case s.To == nil:
			add("sink %q has no To", s.Name)
		case min(s.Batch, s.Calls, s.Window, s.Retry.Attempts) < 0 || min(s.Timeout, s.Retry.First) < 0 || s.Retry.Max < s.Retry.First:
			add("sink %q has a negative option or a Retry.Max below Retry.First", s.Name)
		case s.Exhausted < Park || s.Exhausted > Block:
			add("sink %q has an unknown Exhausted", s.Name)
		}
		if err := checkEventFilter(&s.Filter, c.Workflows); err != nil {
			add("the filter of sink %q: %w", s.Name, err)
		}
		for _, tenant := range s.Tenants {
			if err := transitions.CheckTenant(tenant); err != nil || tenant == "" {
				add("sink %q has an invalid tenant %q", s.Name, tenant)
			}
		}
		names[s.Name] = true
	}
	return c, errors.Join(wrong...)
}

func checkEventFilter(f *transitions.EventFilter, known []*workflow.Workflow) error {
	if slices.Contains(f.Types, "") || slices.Contains(f.States, "") {
		return errors.New("a type or a state is empty")
	}
	if known == nil {
		return f.Check(nil)
	}
	return f.CheckKnown(known)
}

func (s *Sink) serves(tenant string) bool {
	return s.Tenants == nil || slices.Contains(s.Tenants, tenant)
}

func (s *Sink) policy() policy {
	return policy{exhausted: s.Exhausted, attempts: s.Retry.Attempts, batch: s.Batch, calls: s.Calls, window: s.Window,
		maxDeferred: maxDeferred, backoff: s.backoff}
}

// backoff returns a random delay. It stays within the receiver's duplicate window, so that a
// repeated event whose acknowledgement was lost is recognized.
func (s *Sink) backoff(failures int) time.Duration {
	retry := s.Retry
	if d, ok := s.To.(sink.Deduplicator); ok && d.DuplicateWindow() > 0 {
		retry.Max = min(retry.Max, d.DuplicateWindow()/2)
	}
	return backoff.Delay(retry, failures)
}

// maxDeferred is the approximate maximum number of deferred instances per sink.
const maxDeferred = 100_000
