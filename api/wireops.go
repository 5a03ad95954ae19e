package api

import (
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// What operators read, with the names that it has over HTTP and with -o json. What it
// means stands with the types of package inspect, whose fields these are, in order.
type (
	Counts struct {
		At     time.Time       `json:"at"`
		Tenant string          `json:"tenant,omitempty"`
		Exact  bool            `json:"exact"`
		Total  int64           `json:"total"`
		Counts []InstanceCount `json:"counts"`
	}
	WorkflowVersion struct {
		Workflow     string       `json:"workflow"`
		Version      int          `json:"version"`
		Begins       bool         `json:"begins,omitzero"` // new instances begin with it
		Said         bool         `json:"said,omitzero"`   // because an operator has said so; without it, because it is the newest
		Open         int64        `json:"open"`
		Exact        bool         `json:"exact"`
		States       []StateCount `json:"states"`
		Nodes        []string     `json:"nodes"`         // that serve and know it
		NodesWithout []string     `json:"nodes_without"` // that serve and do not
	}
	StateCount struct {
		State workflow.State `json:"state"`
		Open  bool           `json:"open"`
		Count int64          `json:"count"`
		Exact bool           `json:"exact"`
	}
	InstanceCount struct {
		Workflow   string         `json:"workflow"`
		Definition int            `json:"definition"`
		State      workflow.State `json:"state"`
		Open       bool           `json:"open"`
		Count      int64          `json:"count"`
		Exact      bool           `json:"exact"`
	}
	Keys struct {
		At                time.Time     `json:"at"`
		Tenant            string        `json:"tenant,omitempty"`
		Statuses          []StatusCount `json:"statuses"`
		AtLeast           bool          `json:"at_least"`
		Scheduled         int64         `json:"scheduled"`
		Due               int64         `json:"due"`
		Stale             int64         `json:"stale"`
		Lapsed            int64         `json:"lapsed"`
		Stuck             int64         `json:"stuck"`
		Attempts          int64         `json:"attempts"`
		MostTried         int           `json:"most_tried"`
		OldestInFlight    time.Time     `json:"oldest_in_flight,omitzero"`
		OldestDue         time.Time     `json:"oldest_due,omitzero"`
		OldestStale       time.Time     `json:"oldest_stale,omitzero"`
		OldestLapsed      time.Time     `json:"oldest_lapsed,omitzero"`
		Expired           int64         `json:"expired"`
		Forgotten         int64         `json:"forgotten"`
		OldestExpired     time.Time     `json:"oldest_expired,omitzero"`
		DeadMessages      int64         `json:"dead_messages"`
		OldestDeadMessage time.Time     `json:"oldest_dead_message,omitzero"`
		Scopes            []ScopeCount  `json:"scopes,omitempty"`
	}
	StatusCount struct {
		Status   transitions.Status `json:"status"`
		Count    int64              `json:"count"`
		Estimate bool               `json:"estimate"`
	}
	ScopeCount struct {
		Tenant     string `json:"tenant,omitempty"`
		Scope      string `json:"scope"`
		Named      bool   `json:"named"`
		New        int64  `json:"new"`
		Replayed   int64  `json:"replayed"`
		Active     int64  `json:"active"`
		Mismatched int64  `json:"mismatched"`
		Expired    int64  `json:"expired"`
	}
	Retention struct {
		Node       string      `json:"node,omitempty"`
		Since      *time.Time  `json:"since,omitempty"`
		Until      *time.Time  `json:"until,omitempty"`
		Next       *time.Time  `json:"next,omitempty"`
		KeepEvents int64       `json:"keep_events"`
		Partitions []Partition `json:"partitions"`
	}
	Partition struct {
		Name     string    `json:"name"`
		From     time.Time `json:"from"`
		To       time.Time `json:"to"`
		Detached bool      `json:"detached,omitempty"`
		Rows     int64     `json:"rows"`
		Bytes    int64     `json:"bytes"`
		Over     bool      `json:"over"`
		Held     string    `json:"held,omitempty"`
	}
	SinkInfo struct {
		Name        string     `json:"name"`
		Tenants     []string   `json:"tenants,omitempty"`
		Node        string     `json:"node,omitempty"`
		Since       time.Time  `json:"since,omitzero"`
		LeaseEnds   time.Time  `json:"lease_ends,omitzero"`
		Paused      *SinkPause `json:"paused,omitempty"`
		Failures    int        `json:"failures"`
		Failure     string     `json:"failure,omitempty"`
		FailedAt    time.Time  `json:"failed_at,omitzero"`
		Behind      int64      `json:"behind"`
		Lag         int64      `json:"lag"`
		Oldest      time.Time  `json:"oldest,omitzero"`
		Stuck       int64      `json:"stuck"`
		Delivered   int64      `json:"delivered"`
		Failed      int64      `json:"failed"`
		Parked      int64      `json:"parked"`
		DeadLetters int64      `json:"dead_letters"`
		Aside       int64      `json:"aside"`
	}
	SinkPause struct {
		At     time.Time `json:"at"`
		By     string    `json:"by"`
		Reason string    `json:"reason,omitempty"`
	}
	SinkCursor struct {
		Sink     string      `json:"sink"`
		Tenant   string      `json:"tenant"`
		Position int64       `json:"position"`
		Head     int64       `json:"head"`
		Lag      int64       `json:"lag"`
		Oldest   time.Time   `json:"oldest,omitzero"`
		Failure  string      `json:"failure,omitempty"`
		Updated  time.Time   `json:"updated,omitzero"`
		Moved    *CursorMove `json:"moved,omitempty"`
	}
	CursorMove struct {
		From   int64     `json:"from"`
		At     time.Time `json:"at"`
		By     string    `json:"by"`
		Reason string    `json:"reason,omitempty"`
	}
	DeadLetter struct {
		Sink        string             `json:"sink"`
		Tenant      string             `json:"tenant"`
		Position    int64              `json:"position"`
		Type        string             `json:"type"`
		Ordinal     int                `json:"ordinal"`
		Workflow    string             `json:"workflow"`
		Instance    uuid.UUID          `json:"instance"`
		BusinessKey string             `json:"business_key,omitempty"`
		Status      inspect.DeadStatus `json:"status"`
		Kind        string             `json:"kind"`
		Failure     string             `json:"failure"`
		Attempts    int                `json:"attempts"`
		Created     time.Time          `json:"created"`
		Updated     time.Time          `json:"updated"`
		By          string             `json:"by,omitempty"`
		Reason      string             `json:"reason,omitempty"`
	}
	PausedWorkflow struct {
		Tenant   string    `json:"-"`
		Workflow string    `json:"workflow"`
		Actor    string    `json:"actor"`
		Reason   string    `json:"reason,omitempty"`
		At       time.Time `json:"at"`
	}
	PausedInstance struct {
		Workflow    string         `json:"workflow"`
		Instance    uuid.UUID      `json:"instance"`
		BusinessKey string         `json:"business_key,omitempty"`
		State       workflow.State `json:"state"`
		Actor       string         `json:"actor"`
		Reason      string         `json:"reason,omitempty"`
		At          time.Time      `json:"at"`
	}
	// Settled is the answer to an operation on a command.
	Settled struct {
		Operation transitions.Action `json:"operation"`
		Scope     string             `json:"scope"`
		Key       string             `json:"key"`
		At        time.Time          `json:"at"`
		Position  int64              `json:"position,omitzero"` // in the log, of what it did to the instance
	}
	Break struct {
		Instance uuid.UUID `json:"instance"`
		Version  int64     `json:"version"`
		Reason   string    `json:"reason"`
	}
)

// CountsOf is what the interface shows of counts.
func CountsOf(c *inspect.Counts) Counts {
	return Counts{At: c.At, Tenant: c.Tenant, Exact: c.Exact, Total: c.Total,
		Counts: each(c.Counts, func(k *inspect.InstanceCount) InstanceCount { return InstanceCount(*k) })}
}

// VersionsOf is what the interface shows of versions.
func VersionsOf(list []inspect.Version) []WorkflowVersion {
	return each(list, func(v *inspect.Version) WorkflowVersion {
		return WorkflowVersion{Workflow: v.Workflow, Version: v.Version, Begins: v.Begins, Said: v.Said, Open: v.Open, Exact: v.Exact,
			States: each(v.Counts, func(c *inspect.InstanceCount) StateCount { return StateCount{c.State, c.Open, c.Count, c.Exact} }),
			Nodes:  each(v.Knowing, func(n *string) string { return *n }), NodesWithout: each(v.Lacking, func(n *string) string { return *n })}
	})
}

// KeysOf is what the interface shows of keys.
func KeysOf(k *inspect.Keys) Keys {
	return Keys{
		At: k.At, Tenant: k.Tenant, Statuses: each(k.Statuses, func(s *inspect.StatusCount) StatusCount { return StatusCount(*s) }),
		AtLeast: k.AtLeast, Scheduled: k.Scheduled, Due: k.Due, Stale: k.Stale, Lapsed: k.Lapsed, Stuck: k.Stuck,
		Attempts: k.Attempts, MostTried: k.MostTried, OldestInFlight: k.OldestInFlight, OldestDue: k.OldestDue,
		OldestStale: k.OldestStale, OldestLapsed: k.OldestLapsed, Expired: k.Expired, Forgotten: k.Forgotten,
		OldestExpired: k.OldestExpired, DeadMessages: k.DeadMessages, OldestDeadMessage: k.OldestDeadMessage,
		Scopes: each(k.Scopes, func(s *inspect.ScopeCount) ScopeCount { return ScopeCount(*s) }),
	}
}

// RetentionOf is what the interface shows of retention.
func RetentionOf(r *inspect.Retention) Retention {
	return Retention{Node: r.Node, Since: r.Since, Until: r.Until, Next: r.Next, KeepEvents: r.KeepEvents,
		Partitions: each(r.Partitions, func(p *inspect.Partition) Partition { return Partition(*p) })}
}

// SinksOf is what the interface shows of sinks.
func SinksOf(list []inspect.SinkInfo) []SinkInfo { return each(list, sinkOf) }

func sinkOf(s *inspect.SinkInfo) SinkInfo {
	return SinkInfo{
		Name: s.Name, Tenants: s.Tenants, Node: s.Node, Since: s.Since, LeaseEnds: s.LeaseEnds, Paused: (*SinkPause)(s.Paused),
		Failures: s.Failures, Failure: s.Failure, FailedAt: s.FailedAt, Behind: s.Behind, Lag: s.Lag, Oldest: s.Oldest,
		Stuck: s.Stuck, Delivered: s.Delivered, Failed: s.Failed, Parked: s.Parked, DeadLetters: s.DeadLetters, Aside: s.Aside,
	}
}

// CursorsOf is what the interface shows of cursors.
func CursorsOf(list []inspect.SinkCursor) []SinkCursor { return each(list, cursorOf) }

func cursorOf(c *inspect.SinkCursor) SinkCursor {
	return SinkCursor{
		Sink: c.Sink, Tenant: c.Tenant, Position: c.Position, Head: c.Head, Lag: c.Lag, Oldest: c.Oldest, Failure: c.Failure,
		Updated: c.Updated, Moved: (*CursorMove)(c.Moved),
	}
}

// DeadLettersOf is what the interface shows of dead letters.
func DeadLettersOf(list []inspect.DeadLetter) []DeadLetter {
	return each(list, func(l *inspect.DeadLetter) DeadLetter { return DeadLetter(*l) })
}

// PausedOf is what the interface shows of workflows that are paused.
func PausedOf(list []inspect.PausedWorkflow) []PausedWorkflow {
	return each(list, func(p *inspect.PausedWorkflow) PausedWorkflow { return PausedWorkflow(*p) })
}

// PausedInstancesOf is what the interface shows of instances that are paused.
func PausedInstancesOf(list []inspect.PausedInstance) []PausedInstance {
	return each(list, func(p *inspect.PausedInstance) PausedInstance { return PausedInstance(*p) })
}

// each converts a list; nil is an empty one.
func each[A, B any](list []A, to func(*A) B) []B {
	out := make([]B, len(list))
	for i := range list {
		out[i] = to(&list[i])
	}
	return out
}
