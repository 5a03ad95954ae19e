package inspect

import "time"

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
