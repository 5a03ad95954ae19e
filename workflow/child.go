package workflow

import (
	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
)

// Child is an instance that an action asks for; see [Call.Spawn].
type Child struct {
	Workflow   string
	Transition string // a start of that workflow
	// BusinessKey is the business key of the child, the one that its payload names.
	// "" is for a start that has none. If the key belongs to an instance already,
	// the command is refused with AlreadyExists, and an activity fails.
	BusinessKey string
	Payload     any // of that transition; nil is an empty one
	// End is the transition of the parent that the child's completion causes, with an [Ended] as its payload; "" means none. A parent whose
	// state or guard refuses it takes it later: see the history's entries with the suffixes .deferred and .not_taken. Pawl itself has every
	// role: with a role that no caller holds, only Pawl can report a completion.
	End string
}

// Spawned is a child that an action asks for, its payload encoded.
type Spawned struct {
	ID                                uuid.UUID
	Workflow, Transition, BusinessKey string
	Payload                           []byte
	End                               string
}

// Ended is the payload of the transition that the end of a child causes. C is
// the child's data, or as much of them as the parent wants to know: members that
// C does not have are ignored, because an earlier build may have written them.
type Ended[C any] struct {
	Child    uuid.UUID `json:"child"`
	Workflow string    `json:"workflow"`
	State    State     `json:"state"`
	Data     C         `json:"data"`
}

func (Ended[C]) holdsData() {}

// readingOf is how a P is decoded.
func readingOf[P any]() json.Options {
	var p P
	if _, kept := any(p).(interface{ holdsData() }); kept {
		return jsonData
	}
	return jsonPayload
}
