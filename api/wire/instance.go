package wire

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/pawlhq/pawl/workflow"
)

// Instance is an instance as callers see it.
type Instance struct {
	ID          uuid.UUID         `json:"id"`
	Workflow    string            `json:"workflow"`
	Definition  int               `json:"definition"` // the version of the workflow that it is on
	BusinessKey string            `json:"business_key,omitempty"`
	State       workflow.State    `json:"state"`
	Open        bool              `json:"open"` // not in a final state
	Paused      bool              `json:"paused,omitzero"`
	InFlight    *CommandRef       `json:"in_flight,omitempty"` // the command whose outcome takes it on
	Version     int64             `json:"version"`
	Data        jsontext.Value    `json:"data"`
	Attributes  map[string]string `json:"attributes,omitempty"`
	CreatedAt   time.Time         `json:"created_at"`
	UpdatedAt   time.Time         `json:"updated_at"`
}

// PastInstance is an instance as it was after one of its transitions, as far as its audit rows tell.
type PastInstance struct {
	ID          uuid.UUID      `json:"id"`
	Workflow    string         `json:"workflow"`
	Definition  int            `json:"definition"`
	BusinessKey string         `json:"business_key,omitempty"`
	State       workflow.State `json:"state"`
	Open        bool           `json:"open"`
	Version     int64          `json:"version"`
	Newest      int64          `json:"newest_version"`  // the version that it has now
	Data        jsontext.Value `json:"data,omitempty"`  // absent when it was erased
	Erased      bool           `json:"erased,omitzero"` // the data of then is gone for good
	CreatedAt   time.Time      `json:"created_at"`
	UpdatedAt   time.Time      `json:"updated_at"` // when the transition was decided
}

// CommandRef names a command of an instance.
type CommandRef struct {
	Transition string `json:"transition"`
	Scope      string `json:"scope"`
	Key        string `json:"key"`
}

// InstancePage is a page of instances.
type InstancePage struct {
	Instances []Instance `json:"instances"`
	Next      string     `json:"next,omitempty"` // the cursor of the next page, "" on the last; a page may be short without being the last
}

// ChildPage is a page of the instances that one has started, in the order of that.
type ChildPage struct {
	Instance uuid.UUID `json:"instance"` // that has started them
	Children []Child   `json:"children"`
	Next     string    `json:"next,omitempty"` // the cursor of the next page, "" on the last; a page may be short without being the last
}

// Child is an instance that another one has started, as it is now.
type Child struct {
	Instance
	End      string `json:"end,omitempty"`     // the transition of the parent that its end causes
	Stuck    bool   `json:"stuck,omitzero"`    // a command of it waits for an operator
	Deferred bool   `json:"deferred,omitzero"` // it has ended, and its parent does not take that in its state
}

// The parts of an instance view. Members without a comment are described with the types of package inspect that have the same fields.
type (
	// InstanceView is an instance by itself, with what waits on it: of each list
	// inspect.MaxWaiting at most.
	InstanceView struct {
		Instance
		Parent    *Parent            `json:"parent,omitempty"`
		Timers    []Timer            `json:"timers,omitempty"`
		Scheduled []ScheduledCommand `json:"scheduled,omitempty"`
		Stuck     []StuckCommand     `json:"stuck,omitempty"`
		// StuckChildren are the commands that wait for an operator on instances that this one has started and that the caller may read.
		StuckChildren []StuckChild `json:"stuck_children,omitempty"`
		// Deferred are the completions of children that the instance has not taken yet.
		Deferred []Completion `json:"deferred,omitempty"`
		// Effects are the commands whose effects would be undone, in that order: the newest first.
		Effects []CommandRef `json:"effects,omitempty"`
		More    []string     `json:"more,omitempty"` // the lists of these that have only their first hundred
	}
	// Parent is who has started an instance.
	Parent struct {
		Workflow    string    `json:"workflow"`
		Instance    uuid.UUID `json:"instance"`
		BusinessKey string    `json:"business_key,omitempty"` // for who may read it
		End         string    `json:"end,omitempty"`
	}
	Timer struct {
		Name       string    `json:"name"`
		Transition string    `json:"transition"`
		Due        time.Time `json:"due"`
	}
	ScheduledCommand struct {
		Transition string    `json:"transition"`
		Scope      string    `json:"scope"`
		Key        string    `json:"key"`
		Actor      string    `json:"actor"`
		Due        time.Time `json:"due"`
	}
	StuckCommand struct {
		Transition string    `json:"transition"`
		Undo       bool      `json:"undo,omitzero"`
		Scope      string    `json:"scope"`
		Key        string    `json:"key"`
		Stuck      string    `json:"stuck"`
		Failure    string    `json:"failure,omitempty"`
		Failures   int       `json:"failures"`
		Since      time.Time `json:"since"`
		Message    string    `json:"message"`
	}
	// StuckChild is a command that waits for an operator, and its instance.
	StuckChild struct {
		Instance    uuid.UUID `json:"instance"`
		Workflow    string    `json:"workflow"`
		BusinessKey string    `json:"business_key,omitempty"`
		StuckCommand
	}
	// Completion is the end of a child, and the transition of the parent that it causes.
	Completion struct {
		Child uuid.UUID `json:"child"`
		End   string    `json:"end"`
	}
	// Options is what an actor can do with an instance now, and why not.
	Options struct {
		Instance    uuid.UUID      `json:"instance"`
		Transitions []Option       `json:"transitions"`
		Stuck       []StuckCommand `json:"stuck,omitempty"`
	}
	Option struct {
		Transition string           `json:"transition"`
		Allowed    bool             `json:"allowed"`
		To         []workflow.State `json:"to"`
		Reasons    []WhyNot         `json:"reasons,omitempty"`
	}
	WhyNot struct {
		Code    workflow.Code `json:"code"`
		Message string        `json:"message"`
	}
)
