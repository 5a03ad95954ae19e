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
	ID        int64
	Workflow  string
	From, To  int // versions of the definition
	PerSecond int // instances, at most
	Actor     string
	Proof     string // how it was known who that is
	Reason    string
	CreatedAt time.Time
	Expected  int64     // instances when it was asked for, about
	Migrated  int64     // gone to the version
	Skipped   int64     // gone there before, or ended
	Rejected  int64     // the plan does not take them
	Waiting   int64     // could not be taken when all were looked at last, and are tried again; at its end: have begun since, at most 10,000
	Held      string    // why it does not go on now, why some wait, or why some are left at its end; "" none of it
	Node      string    // that does it; "" none
	Next      time.Time // until when that node holds it; from when on one may take it, where none does
	Refusals  []MigrationRefusal
	StoppedAt time.Time // zero: nobody has asked for its end
	EndedAt   time.Time // zero: it has not ended
	Key       string    // that it was asked for with, "" none

	StoppedBy, StopReason string // who has asked for its end first, and why
}

// MigrationPlan is a plan that a node has: instances of a workflow can be taken from the one version to the other.
type MigrationPlan struct {
	Workflow string
	From, To int
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
	State    workflow.State
	Reason   string
	Count    int64
	Instance uuid.UUID // one of them
}

// MigrationPreview is what a migration would do now.
type MigrationPreview struct {
	Workflow string
	From, To int
	At       time.Time
	Lacking  []string // the nodes that serve and do not know the version: as long as there is one, nothing is migrated
	States   []MigrationState
	Refusals []MigrationRefusal
}

// MigrationState is what becomes of the instances in a state.
type MigrationState struct {
	State, To workflow.State // To: "" where none is taken
	Count     int64
	Migrated  int64 // of these: they would go on
	Waiting   int64 // they would have to wait for an activity
	Rejected  int64 // the plan does not take them
	Overdue   int64 // of those that would go on: how many have a timer then whose time has passed, and which fires at once
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
