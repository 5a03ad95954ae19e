package inspect

import (
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/workflow"
)

// MigrationRequest requests the migration of all running instances of a version to another version.
type MigrationRequest struct {
	Workflow  string
	From, To  int    // versions of the definition
	PerSecond int    // the maximum number of instances per second. Defaults to 500
	Actor     string // the requesting operator. Defaults to transitions.DefaultActor
	Proof     string // how the actor was authenticated
	Reason    string
	Key       string // a repeated request with it returns the same migration; "" always starts another
}

// Migration describes the progress of a migration of instances.
type Migration struct {
	ID        int64              `json:"id"`
	Workflow  string             `json:"workflow"`
	From      int                `json:"from"`
	To        int                `json:"to"`         // versions of the definition
	PerSecond int                `json:"per_second"` // the maximum number of instances
	Actor     string             `json:"actor"`
	Proof     string             `json:"-"` // how the actor was authenticated
	Reason    string             `json:"reason,omitempty"`
	CreatedAt time.Time          `json:"created_at"`
	Expected  int64              `json:"expected"`       // approximate number of instances at the request
	Migrated  int64              `json:"migrated"`       // moved to the version
	Skipped   int64              `json:"skipped"`        // moved before, or ended
	Rejected  int64              `json:"rejected"`       // the plan does not take them
	Waiting   int64              `json:"waiting"`        // deferred by the last pass; after the end: created since
	Held      string             `json:"held,omitempty"` // why it is waiting, why some instances wait, or why some are left at its end
	Node      string             `json:"node,omitempty"` // the node that runs it; "" for none
	Next      time.Time          `json:"-"`              // the end of the node's lease; without a node, when one may take it
	Refusals  []MigrationRefusal `json:"refusals,omitempty"`
	StoppedAt time.Time          `json:"stopped_at,omitzero"` // zero if its end was not requested
	EndedAt   time.Time          `json:"ended_at,omitzero"`   // zero while it runs
	Key       string             `json:"-"`                   // the key of its request, "" for none

	StoppedBy  string `json:"stopped_by,omitempty"`
	StopReason string `json:"stop_reason,omitempty"` // of the first request to stop it
}

// MigrationPlan is a plan of a node for moving instances of a workflow between two versions.
type MigrationPlan struct {
	Workflow string `json:"workflow"`
	From     int    `json:"from"`
	To       int    `json:"to"`
}

// Left returns the approximate number of instances without a decision. After an end without a stop, it is the number of instances created
// with the version since the request; zero means that no more are created, except for the reason in Held.
func (m *Migration) Left() int64 {
	if !m.EndedAt.IsZero() && m.StoppedAt.IsZero() {
		return m.Waiting
	}
	return max(m.Expected-m.Migrated-m.Skipped-m.Rejected, m.Waiting, 0)
}

// MaxRefusals is how many reasons a migration, or a preview of one, tells.
const MaxRefusals = 100

// MigrationRefusal is why instances in a state are not migrated. Reason "" counts the reasons beyond the limit.
type MigrationRefusal struct {
	State    workflow.State `json:"state,omitempty"`
	Reason   string         `json:"reason,omitempty"`
	Count    int64          `json:"count"`
	Instance uuid.UUID      `json:"instance,omitzero"` // one of them
}

// MigrationPreview is what a migration would do now.
type MigrationPreview struct {
	Workflow     string             `json:"workflow"`
	From         int                `json:"from"`
	To           int                `json:"to"`
	At           time.Time          `json:"at"`
	NodesWithout []string           `json:"nodes_without,omitempty"` // live nodes that do not know the version
	States       []MigrationState   `json:"states"`
	Refusals     []MigrationRefusal `json:"refusals,omitempty"`
}

// MigrationState is what becomes of the instances in a state.
type MigrationState struct {
	State    workflow.State `json:"state"`
	To       workflow.State `json:"to,omitempty"` // "" if the plan moves none
	Count    int64          `json:"count"`
	Migrated int64          `json:"migrated"` // would be moved
	Waiting  int64          `json:"waiting"`  // they would have to wait for an activity
	Rejected int64          `json:"rejected"` // the plan does not take them
	Overdue  int64          `json:"overdue"`  // of the moved: with an overdue timer, which fires at once
}

// Refused adds a refusal to a list, each reason of a state once.
func Refused(list []MigrationRefusal, r MigrationRefusal) []MigrationRefusal {
	for i := range list {
		if list[i].State == r.State && list[i].Reason == r.Reason {
			list[i].Count += r.Count
			return list
		}
	}
	switch {
	case len(list) < MaxRefusals:
		return append(list, r)
	case len(list) == MaxRefusals:
		return append(list, MigrationRefusal{Count: r.Count})
	}
	list[MaxRefusals].Count += r.Count
	return list
}
