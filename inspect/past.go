package inspect

import (
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/workflow"
)

// Past is an instance as it was after one of its transitions, as far as its audit
// rows tell. Attributes, and what was in flight or paused, they do not.
type Past struct {
	Tenant      string
	ID          uuid.UUID
	Workflow    string
	Definition  int // the version of the definition that it began with
	BusinessKey string
	State       workflow.State
	Version     int64
	Newest      int64  // the version that it has now
	Data        []byte // nil where it was erased
	Erased      bool   // the data of then was erased; its digest is still in the audit chain
	Open        bool   // not in a final state
	CreatedAt   time.Time
	UpdatedAt   time.Time // when the transition was decided
}
