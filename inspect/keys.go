package inspect

import (
	"time"

	"github.com/pawlhq/pawl/transitions"
)

// Keys counts the commands of a tenant or of all tenants: in flight, finished and expired. Counts of commands in flight are bounded, so
// that the query is cheap on any database; see AtLeast.
type Keys struct {
	At       time.Time     `json:"at"`               // by the database's clock
	Tenant   string        `json:"tenant,omitempty"` // "" means all tenants
	Statuses []StatusCount `json:"statuses"`         // all six, in the order of a command's life cycle

	AtLeast   bool  `json:"at_least"`   // more commands are in flight than these counts include
	Scheduled int64 `json:"scheduled"`  // in flight, with a start time in the future
	Due       int64 `json:"due"`        // due, without a worker yet
	Stale     int64 `json:"stale"`      // with an expired lease of a worker
	Lapsed    int64 `json:"lapsed"`     // with an expired claim of a caller in SQL
	Stuck     int64 `json:"stuck"`      // waiting for an operator
	Attempts  int64 `json:"attempts"`   // claimed ManyAttempts times or more
	MostTried int   `json:"most_tried"` // the highest number of claims of one command

	// OldestInFlight is when the oldest command in flight was first submitted, without scheduled ones.
	OldestInFlight time.Time `json:"oldest_in_flight,omitzero"`
	// OldestDue is when the command became due that has been due the longest, including commands that nodes claim and release without an
	// attempt.
	OldestDue    time.Time `json:"oldest_due,omitzero"`
	OldestStale  time.Time `json:"oldest_stale,omitzero"`  // when the first of the expired leases ended
	OldestLapsed time.Time `json:"oldest_lapsed,omitzero"` // when the first of the expired claims ended

	// Expired and Forgotten are answers and tombstones past their retention periods that retention has not removed yet. Counted up to
	// MaxCounted.
	Expired       int64     `json:"expired"`
	Forgotten     int64     `json:"forgotten"`
	OldestExpired time.Time `json:"oldest_expired,omitzero"` // the end of the retention period that ended first

	// DeadMessages are messages that were not consumed and wait for an operator. Counted up to MaxCounted of all tenants.
	DeadMessages      int64     `json:"dead_messages"`
	OldestDeadMessage time.Time `json:"oldest_dead_message,omitzero"`

	// Scopes are the attempts that this node has answered since its start, the most frequent scope first.
	Scopes []ScopeCount `json:"scopes,omitempty"`
	// Recorded are the attempts that all nodes answered in the last 30 days, ordered by their number. Nodes record them once a minute and
	// when they stop. They do not include attempts in the SQL contract.
	Recorded []ScopeCount `json:"recorded,omitempty"`
	// RecordedSince is the first of those days at 00:00 UTC. It is zero if none is recorded.
	RecordedSince time.Time `json:"recorded_since,omitzero"`
}

const (
	// ManyAttempts is the number of claims from which a command is counted in Keys.Attempts.
	ManyAttempts = 5
	// MaxCounted is the maximum count of each kind: commands in flight that are scheduled or due, leased, held or released by a caller in
	// SQL, or stuck; expired commands; dead messages. Every node counts them for each scrape, and reads a row for each.
	MaxCounted = 10_000
)

// StatusCount is the number of commands with a status.
type StatusCount struct {
	Status   transitions.Status `json:"status"`
	Count    int64              `json:"count"`
	Estimate bool               `json:"estimate"` // an estimate of the planner: counting would read the table
}

// ScopeCount counts the answers of attempts with keys of one scope, or of one kind of scope.
type ScopeCount struct {
	// Tenant is "" for the sum of the tenants that are not counted one by one.
	Tenant string `json:"tenant,omitempty"`
	// Scope is the workflow and the transition of a default scope ("order:pay"), the consumer of messages ("inbox:bank"), or the scope
	// that the caller named. OtherScopes is the sum of the named scopes beyond the limit.
	Scope      string `json:"scope"`
	Named      bool   `json:"named"`      // a caller named it
	New        int64  `json:"new"`        // first attempts
	Replayed   int64  `json:"replayed"`   // answered with the stored result or refusal
	Active     int64  `json:"active"`     // the command was in flight
	Mismatched int64  `json:"mismatched"` // the key was used with another request
	Expired    int64  `json:"expired"`    // the answer was gone
}

// OtherScopes is the name of the sum of scopes that are not counted one by one.
const OtherScopes = "other"

// Attempts returns the number of attempts.
func (s *ScopeCount) Attempts() int64 { return s.New + s.Suppressed() }

// Suppressed returns the number of attempts that did not run again.
func (s *ScopeCount) Suppressed() int64 { return s.Replayed + s.Active + s.Mismatched + s.Expired }

// Rate returns the fraction of the attempts that did not run again, from 0 to 1.
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

// Retention describes the work of retention: the node that does it for all nodes, and the partitions.
type Retention struct {
	Node       string      `json:"node,omitempty"` // empty if no node does it now
	Since      *time.Time  `json:"since,omitempty"`
	Until      *time.Time  `json:"until,omitempty"` // the end of the node's lease, after which another node takes over
	Next       *time.Time  `json:"next,omitempty"`  // when the first key is or was due; nil for none
	KeepEvents int64       `json:"keep_events"`     // seconds; the configuration of the answering node, for Over
	Partitions []Partition `json:"partitions"`      // by name: the oldest of each table first
}

// Partition is a week of the outbox, or a month of the history of commands.
type Partition struct {
	Name     string    `json:"name"`
	From     time.Time `json:"from"`
	To       time.Time `json:"to"`                 // the exclusive end
	Detached bool      `json:"detached,omitempty"` // about to be dropped, or attached again
	Rows     int64     `json:"rows"`               // an estimate
	Bytes    int64     `json:"bytes"`              // including indexes
	Over     bool      `json:"over"`               // past its age
	Held     string    `json:"held,omitempty"`     // why a partition past its age is kept
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

// countRest adds c to the entry of the list for further scopes of all tenants. There is one for each declared scope, and OtherScopes for
// scopes that callers named.
func countRest(list []ScopeCount, c ScopeCount) []ScopeCount {
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

// MergeScopes adds more to a list. Scopes beyond most are counted together; see countRest.
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
			list = countRest(list, c)
		}
	}
	return list
}
