package inspect

import (
	"time"

	"github.com/pawlhq/pawl/transitions"
)

// Keys says how the keys of commands stand: what is in flight, what is finished,
// what has expired. Counts of what is in flight are bounded, so that to ask is
// cheap however much there is; see AtLeast.
type Keys struct {
	At       time.Time     `json:"at"`               // by the database's clock
	Tenant   string        `json:"tenant,omitempty"` // whose; "" is everybody's
	Statuses []StatusCount `json:"statuses"`         // all six, in the order of a command's life

	AtLeast   bool  `json:"at_least"`   // there are more in flight than are counted here
	Scheduled int64 `json:"scheduled"`  // of those in flight, the ones whose time is still to come
	Due       int64 `json:"due"`        // the ones whose time has come, and that no node works on yet
	Stale     int64 `json:"stale"`      // the ones whose worker's lease has run out
	Lapsed    int64 `json:"lapsed"`     // the ones that a caller in SQL claimed and did not end in time
	Stuck     int64 `json:"stuck"`      // the ones that wait for an operator
	Attempts  int64 `json:"attempts"`   // the ones that were claimed ManyAttempts times or more
	MostTried int   `json:"most_tried"` // how often the one was claimed that was claimed most

	// OldestInFlight is when the oldest command in flight was first asked, without
	// those whose time is still to come.
	OldestInFlight time.Time `json:"oldest_in_flight,omitzero"`
	// OldestDue is since when the longest due one is due, also where nodes claim it and
	// give it back without an attempt.
	OldestDue    time.Time `json:"oldest_due,omitzero"`
	OldestStale  time.Time `json:"oldest_stale,omitzero"`  // when the first of the stale leases ran out
	OldestLapsed time.Time `json:"oldest_lapsed,omitzero"` // when the time of the first of the lapsed claims ran out

	// Expired and Forgotten are what retention has not seen to yet: answers past
	// their horizon, and tombstones past theirs. Counted up to MaxCounted.
	Expired       int64     `json:"expired"`
	Forgotten     int64     `json:"forgotten"`
	OldestExpired time.Time `json:"oldest_expired,omitzero"` // the horizon that was passed first

	// DeadMessages are messages that were not consumed and wait for an operator.
	// Counted up to MaxCounted of all tenants.
	DeadMessages      int64     `json:"dead_messages"`
	OldestDeadMessage time.Time `json:"oldest_dead_message,omitzero"`

	// Scopes are the attempts that this node has answered since its start, those
	// with the most first.
	Scopes []ScopeCount `json:"scopes,omitempty"`
	// Recorded are the attempts that all nodes answered in the last 30 days, ordered by their number. Nodes record them once a minute and
	// when they stop. They do not include attempts in the SQL contract.
	Recorded []ScopeCount `json:"recorded,omitempty"`
	// RecordedSince is the first of those days at 00:00 UTC. It is zero if none is recorded.
	RecordedSince time.Time `json:"recorded_since,omitzero"`
}

const (
	// ManyAttempts is how many claims of a command are many.
	ManyAttempts = 5
	// MaxCounted is how many are counted of each kind: commands in flight that wait
	// for their time or are due, are leased, are held or were given back by a SQL
	// caller, or are stuck; commands that have expired; dead messages. Every node
	// counts for each scrape, and reads a row for each.
	MaxCounted = 10_000
)

// StatusCount is how many commands have a status.
type StatusCount struct {
	Status   transitions.Status `json:"status"`
	Count    int64              `json:"count"`
	Estimate bool               `json:"estimate"` // the planner's guess: to count them would be to read the table
}

// ScopeCount is how the attempts with keys of one scope, or of one kind of
// scope, were answered.
type ScopeCount struct {
	// Tenant is whose they were; "" stands for the tenants that are not counted one
	// by one.
	Tenant string `json:"tenant,omitempty"`
	// Scope is the workflow and the transition where the scope is the default one,
	// "order:pay", or the consumer of messages, "inbox:bank", else the scope that the
	// caller named. OtherScopes has those that there was no room for.
	Scope      string `json:"scope"`
	Named      bool   `json:"named"`      // a caller named it
	New        int64  `json:"new"`        // first attempts
	Replayed   int64  `json:"replayed"`   // got the stored answer, refusals too
	Active     int64  `json:"active"`     // the command was in flight
	Mismatched int64  `json:"mismatched"` // the key was used with another request
	Expired    int64  `json:"expired"`    // the answer was gone
}

// OtherScopes stands for the scopes that are not counted one by one.
const OtherScopes = "other"

// Attempts is how many there were.
func (s *ScopeCount) Attempts() int64 { return s.New + s.Suppressed() }

// Suppressed is how many of them did not run again.
func (s *ScopeCount) Suppressed() int64 { return s.Replayed + s.Active + s.Mismatched + s.Expired }

// Rate is the share of the attempts that did not run again, 0 to 1.
func (s *ScopeCount) Rate() float64 {
	if n := s.Attempts(); n > 0 {
		return float64(s.Suppressed()) / float64(n)
	}
	return 0
}

// Merge adds the counts of another scope.
func (s *ScopeCount) Merge(o *ScopeCount) {
	s.New += o.New
	s.Replayed += o.Replayed
	s.Active += o.Active
	s.Mismatched += o.Mismatched
	s.Expired += o.Expired
}

// Retention is how retention stands: who does it for all nodes, and what there is.
type Retention struct {
	Node       string      `json:"node,omitempty"` // empty: nobody does it now
	Since      *time.Time  `json:"since,omitempty"`
	Until      *time.Time  `json:"until,omitempty"` // when another node takes over, unless it prolongs its lease
	Next       *time.Time  `json:"next,omitempty"`  // when the first key is due, or was; nil: none ever
	KeepEvents int64       `json:"keep_events"`     // seconds; how long the answering node is configured to keep events, for Over
	Partitions []Partition `json:"partitions"`      // by name, so the oldest of each table first
}

// Partition is a part of the outbox, a week, or of the history of commands, a
// month.
type Partition struct {
	Name     string    `json:"name"`
	From     time.Time `json:"from"`
	To       time.Time `json:"to"`                 // its rows are older than that
	Detached bool      `json:"detached,omitempty"` // it is about to be dropped, or attached again
	Rows     int64     `json:"rows"`               // about
	Bytes    int64     `json:"bytes"`              // with its indexes
	Over     bool      `json:"over"`               // it is past its age
	Held     string    `json:"held,omitempty"`     // why it is there all the same: who still needs it
}

// Since returns the difference of s and earlier counts.
func (s ScopeCount) Since(o *ScopeCount) ScopeCount {
	s.New -= o.New
	s.Replayed -= o.Replayed
	s.Active -= o.Active
	s.Mismatched -= o.Mismatched
	s.Expired -= o.Expired
	return s
}

// CountRest adds c to the entry of the list for further scopes of all tenants. There is one for each declared scope, and OtherScopes for
// scopes that callers named.
func CountRest(list []ScopeCount, c ScopeCount) []ScopeCount {
	c.Tenant = ""
	if c.Named {
		c.Scope = OtherScopes
	}
	for i := range list {
		if o := &list[i]; o.Tenant == "" && o.Scope == c.Scope && o.Named == c.Named {
			o.Merge(&c)
			return list
		}
	}
	return append(list, c)
}

// MergeScopes adds more to a list. Scopes beyond most are counted together; see CountRest.
func MergeScopes(list, more []ScopeCount, most int) []ScopeCount {
	type scope struct {
		tenant, scope string
		named         bool
	}
	places := make(map[scope]int, len(list))
	for i := range list {
		places[scope{list[i].Tenant, list[i].Scope, list[i].Named}] = i
	}
	for _, c := range more {
		of := scope{c.Tenant, c.Scope, c.Named}
		switch i, known := places[of]; {
		case known:
			list[i].Merge(&c)
		case len(list) < most:
			places[of] = len(list)
			list = append(list, c)
		default:
			list = CountRest(list, c)
		}
	}
	return list
}
