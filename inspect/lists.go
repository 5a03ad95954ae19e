package inspect

import (
	"math"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Filter selects instances. Empty fields select everything.
type Filter struct {
	Tenant      string
	Workflow    string
	Definition  int              // the version of the definition that they are on
	States      []workflow.State // any of these
	Open        *bool            // whether they are in no final state
	BusinessKey string           // with Workflow
	Attributes  map[string]string
	Ranges      map[string]Range // by attribute

	// Times are compared to the microsecond: After is inclusive, Before is exclusive.
	CreatedAfter, CreatedBefore time.Time
	UpdatedAfter, UpdatedBefore time.Time

	Order Order
	After Place // the cursor: Next of the page before
	Limit int   // 1 to 1000; 0 is 100
}

// Check refuses a filter that cannot be meant: among others attributes that none of the versions of its workflow declares, where there
// are versions. Error: InvalidRequest.
func (f *Filter) Check(versions []*workflow.Workflow) error {
	switch {
	case f.BusinessKey != "" && f.Workflow == "":
		return workflow.Errorf(workflow.InvalidRequest, "a filter by business key needs the workflow")
	case f.Order != ByCreation && f.Order != ByUpdate:
		return workflow.Errorf(workflow.InvalidRequest, "unknown order of instances")
	case never(f.CreatedAfter, f.CreatedBefore):
		return workflow.Errorf(workflow.InvalidRequest, "nothing is created after one time and before another that is not later")
	case never(f.UpdatedAfter, f.UpdatedBefore):
		return workflow.Errorf(workflow.InvalidRequest, "nothing is updated after one time and before another that is not later")
	}
	if err := transitions.CheckTenant(f.Tenant); err != nil {
		return err
	}
	if err := checkStates(f.States); err != nil {
		return err
	}
	if err := transitions.CheckAttributes(f.Workflow, f.Attributes, versions); err != nil {
		return err
	}
	for name, r := range f.Ranges {
		for _, bound := range []string{r.From, r.Before, r.Prefix} {
			if err := transitions.CheckAttributes(f.Workflow, map[string]string{name: bound}, versions); err != nil {
				return err
			}
		}
		if r.From != "" && r.Before != "" && r.Before <= r.From {
			return workflow.Errorf(workflow.InvalidRequest, "no value of attribute %q is from %q on and before %q", name, r.From, r.Before)
		}
	}
	return checkDefinition(f.Definition)
}

// Range selects the values of an attribute. Values are compared byte by byte, as the text they are: dates and times in ISO 8601 and
// numbers of equal length sort as expected. An empty bound selects everything.
type Range struct {
	From   string // this value or a later one
	Before string // an earlier value
	Prefix string // values that begin with this
}

func never(after, before time.Time) bool {
	return !after.IsZero() && !before.IsZero() && !before.After(after)
}

type Order int

const (
	// ByCreation lists the oldest first, by the time of creation and then by id. Neither changes: page after page shows no instance
	// twice, and each instance that is selected all the time.
	ByCreation Order = iota
	// ByUpdate lists the latest update first. An instance that is updated while pages are read moves to the front, and is missing from
	// later pages.
	ByUpdate
)

// Place is the position of the next page of a list of instances. The zero value is its beginning.
type Place struct {
	At time.Time // of the creation, or of the last transition in the order ByUpdate
	ID uuid.UUID
}

// Page is a page of instances.
type Page struct {
	// Instances may be fewer than requested, or none, although there are more: a page examines a bounded number of instances.
	Instances []transitions.Instance
	More      bool  // there may be more
	Next      Place // then, where the list goes on
}

// CountFilter selects what is counted. Empty fields select everything.
type CountFilter struct {
	Tenant     string // "" is everybody
	Workflow   string
	Definition int
	States     []workflow.State // any of these
	Open       *bool
	Attributes map[string]string
}

// Check refuses a filter that cannot be meant, such as an attribute that none of the versions of its workflow declares, where there are
// versions. Error: InvalidRequest.
func (f *CountFilter) Check(versions []*workflow.Workflow) error {
	if err := transitions.CheckTenant(f.Tenant); err != nil {
		return err
	}
	if err := checkStates(f.States); err != nil {
		return err
	}
	if err := transitions.CheckAttributes(f.Workflow, f.Attributes, versions); err != nil {
		return err
	}
	return checkDefinition(f.Definition)
}

// maxState is the longest state that can be asked for, in bytes.
const maxState = 255

func checkStates(states []workflow.State) error {
	for _, s := range states {
		if problem := transitions.TextProblem(string(s), maxState); problem != "" {
			return workflow.Errorf(workflow.InvalidRequest, "the state %s", problem)
		}
	}
	return nil
}

func checkDefinition(version int) error {
	if version < 0 || version > math.MaxInt32 {
		return workflow.Errorf(workflow.InvalidRequest, "the definition %d is not a version from 1 on", version)
	}
	return nil
}

// Counts has the number of instances of each workflow, version and state.
type Counts struct {
	At     time.Time       `json:"at"`               // by the node's clock
	Tenant string          `json:"tenant,omitempty"` // whose; "" is everybody's
	Exact  bool            `json:"exact"`            // all of them are
	Total  int64           `json:"total"`
	Counts []InstanceCount `json:"counts"` // by workflow, definition, state; those that have none are left out
}

// InstanceCount is the number of instances of one workflow, version and state.
type InstanceCount struct {
	Workflow   string         `json:"workflow"`
	Definition int            `json:"definition"` // the version of the definition that they are on
	State      workflow.State `json:"state"`
	Open       bool           `json:"open"` // not in a final state
	Count      int64          `json:"count"`
	// Exact says that they were counted. Otherwise there are more than are counted,
	// and Count is what the planner of PostgreSQL expects after its last ANALYZE.
	Exact bool `json:"exact"`
}

// Add counts more instances, of whatever kind.
func (c *Counts) Add(more InstanceCount) {
	c.Total += more.Count
	c.Exact = c.Exact && more.Exact
	for i := range c.Counts {
		have := &c.Counts[i]
		if have.Workflow == more.Workflow && have.Definition == more.Definition && have.State == more.State && have.Open == more.Open {
			have.Count += more.Count
			have.Exact = have.Exact && more.Exact
			return
		}
	}
	c.Counts = append(c.Counts, more)
}

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

// CommandKind selects commands in flight: a status, or another number of [Keys].
type CommandKind string

// The kinds. One command may be of several.
const (
	CommandsAll        CommandKind = ""                 // all in flight
	CommandsPending    CommandKind = "pending"          // it waits for a worker, or for its time
	CommandsProcessing CommandKind = "processing"       // somebody works on it
	CommandsRetryable  CommandKind = "failed_retryable" // an attempt has failed; there will be another, or an operator decides
	CommandsScheduled  CommandKind = "scheduled"        // its time is still to come: timers, and what callers have asked for later
	CommandsDue        CommandKind = "due"              // its time has come, and nobody works on it yet
	CommandsStale      CommandKind = "stale"            // the lease of its worker has run out
	CommandsLapsed     CommandKind = "lapsed"           // a caller in SQL has claimed it, and did not end in time
	CommandsStuck      CommandKind = "stuck"            // it waits for an operator
)

// CommandKinds are the kinds that can be asked for.
var CommandKinds = []CommandKind{CommandsPending, CommandsProcessing, CommandsRetryable, CommandsScheduled, CommandsDue, CommandsStale,
	CommandsLapsed,
	CommandsStuck}

// CommandFilter selects commands in flight. Empty fields select everything.
type CommandFilter struct {
	Tenant   string
	Kind     CommandKind
	Workflow string
	Actor    string       // who sent them
	Proof    string       // a part of their proof, such as the id of an API key; also of tickets that were requested with it
	After    CommandPlace // the cursor: Next of the page before
	Limit    int          // 1 to 1000; 0 is 100
}

// CommandPlace is the position of the next page of a list of commands. The zero value is its beginning.
type CommandPlace struct {
	Part     int // of the list, from 0
	Group    string
	Subgroup string
	At       time.Time
	Instance uuid.UUID
	Scope    string
	Key      string
}

// CommandPage is a page of commands in flight, without their requests, with their reasons and the business keys of their instances.
type CommandPage struct {
	// Commands may be fewer than requested, or none, although there are more: a page examines a bounded number.
	Commands []transitions.Record
	More     bool         // there may be more
	Next     CommandPlace // then, where the list goes on
}
