package inspect

import "time"

// Retention is how retention stands: who does it for all nodes, and what there is.
type Retention struct {
	Node       string // empty: nobody does it now
	Since      *time.Time
	Until      *time.Time  // when another node takes over, unless it prolongs its lease
	Next       *time.Time  // when the first key is due, or was; nil: none ever
	KeepEvents int64       // seconds; how long the answering node is configured to keep events, for Over
	Partitions []Partition // by name, so the oldest of each table first
}

// Partition is a part of the outbox, a week, or of the history of commands, a
// month.
type Partition struct {
	Name     string
	From     time.Time
	To       time.Time // its rows are older than that
	Detached bool      // it is about to be dropped, or attached again
	Rows     int64     // about
	Bytes    int64     // with its indexes
	Over     bool      // it is past its age
	Held     string    // why it is there all the same: who still needs it
}
