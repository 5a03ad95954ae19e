package inspect

import (
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/workflow"
)

// MigrationRequest asks for the migration of all instances of a version that are under way to another version.
type MigrationRequest struct {
	Workflow  string
	From, To  int    // versions of the definition
	PerSecond int    // instances in a second, at most. Default 500
	Actor     string // who asks. Default transitions.DefaultActor
	Proof     string // how it is known who that is
	Reason    string
	Key       string // asked for once more with it, it is the same migration; "": each is another one
}

// Migration is how a migration of instances stands.
type Migration struct {
	ID        int64              `json:"id"`
	Workflow  string             `json:"workflow"`
	From      int                `json:"from"`
	To        int                `json:"to"`         // versions of the definition
	PerSecond int                `json:"per_second"` // instances, at most
	Actor     string             `json:"actor"`
	Proof     string             `json:"-"` // how it was known who that is
	Reason    string             `json:"reason,omitempty"`
	CreatedAt time.Time          `json:"created_at"`
	Expected  int64              `json:"expected"`       // instances when it was asked for, about
	Migrated  int64              `json:"migrated"`       // gone to the version
	Skipped   int64              `json:"skipped"`        // gone there before, or ended
	Rejected  int64              `json:"rejected"`       // the plan does not take them
	Waiting   int64              `json:"waiting"`        // could not be taken when all were looked at last, and are tried again; at its end: have begun since, at most 10,000
	Held      string             `json:"held,omitempty"` // why it does not go on now, why some wait, or why some are left at its end; "" none of it
	Node      string             `json:"node,omitempty"` // that does it; "" none
	Next      time.Time          `json:"-"`              // until when that node holds it; from when on one may take it, where none does
	Refusals  []MigrationRefusal `json:"refusals,omitempty"`
	StoppedAt time.Time          `json:"stopped_at,omitzero"` // zero: nobody has asked for its end
	EndedAt   time.Time          `json:"ended_at,omitzero"`   // zero: it has not ended
	Key       string             `json:"-"`                   // that it was asked for with, "" none

	StoppedBy  string `json:"stopped_by,omitempty"`
	StopReason string `json:"stop_reason,omitempty"` // who has asked for its end first, and why
}

// MigrationPlan is a plan that a node has: instances of a workflow can be taken from the one version to the other.
type MigrationPlan struct {
	Workflow string `json:"workflow"`
	From     int    `json:"from"`
	To       int    `json:"to"`
}

// Left is how many instances it has still to decide about, about. Where it has ended without being stopped, it is how many have begun
// with the version since it was asked for: 0 says that there were none, and that no more begin unless Held says so.
func (m *Migration) Left() int64 {
	if !m.EndedAt.IsZero() && m.StoppedAt.IsZero() {
		return m.Waiting
	}
	return max(m.Expected-m.Migrated-m.Skipped-m.Rejected, m.Waiting, 0)
}

// MaxRefusals is how many reasons a migration, or a preview of one, tells.
const MaxRefusals = 100

// MigrationRefusal is why instances in a state are not taken. How many there were for the reasons that are not
// told is under Reason "".
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
	NodesWithout []string           `json:"nodes_without,omitempty"` // the nodes that serve and do not know the version: as long as there is one, nothing is migrated
	States       []MigrationState   `json:"states"`
	Refusals     []MigrationRefusal `json:"refusals,omitempty"`
}

// MigrationState is what becomes of the instances in a state.
type MigrationState struct {
	State    workflow.State `json:"state"`
	To       workflow.State `json:"to,omitempty"` // To: "" where none is taken
	Count    int64          `json:"count"`
	Migrated int64          `json:"migrated"` // of these: they would go on
	Waiting  int64          `json:"waiting"`  // they would have to wait for an activity
	Rejected int64          `json:"rejected"` // the plan does not take them
	Overdue  int64          `json:"overdue"`  // of those that would go on: how many have a timer then whose time has passed, and which fires at once
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
