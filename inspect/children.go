package inspect

import (
	"github.com/google/uuid"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Parent is the instance that has started another one.
type Parent struct {
	Workflow    string
	Instance    uuid.UUID
	BusinessKey string
	End         string // the transition of the parent that the end of the child causes; "" none
}

// ChildFilter selects instances that another one has started. What is empty selects everything.
type ChildFilter struct {
	Tenant string
	Parent uuid.UUID        // required
	States []workflow.State // any of these
	Open   *bool            // whether they are in no final state
	Stuck  *bool            // whether a command of theirs waits for an operator
	After  ChildPlace       // the cursor: Next of the page before
	Limit  int              // 1 to 1000; 0 is 100
}

// Check validates the filter. Error: InvalidRequest.
func (f *ChildFilter) Check() error {
	if err := transitions.CheckTenant(f.Tenant); err != nil {
		return err
	}
	return checkStates(f.States)
}

// ChildPlace is the position of the next page of a list of children. The zero value is its beginning.
type ChildPlace struct {
	Version int64 // of the parent, that started the child
	Ordinal int   // the child's number among those of this version
}

// Child is an instance that another one has started.
type Child struct {
	transitions.Instance
	Stuck    bool // a command of it waits for an operator
	Deferred bool // it has ended, and its parent does not take that in its state
}

// ChildPage is a page of children, in the order in which they were started.
type ChildPage struct {
	// Children may be fewer than requested, or none, although there are more: a page examines a bounded number of transitions and children.
	Children []Child
	More     bool       // there may be more
	Next     ChildPlace // then, where the list goes on
}
