package api

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
)

func instanceOf(i *transitions.Instance) wire.Instance {
	return wire.Instance{
		ID: i.ID, Workflow: i.Workflow, Definition: i.Definition, BusinessKey: i.BusinessKey, State: i.State,
		Open: i.Open, Paused: i.Paused, InFlight: refOf(i.Links.InFlight), Version: i.Version, Data: raw(i.Data), Attributes: i.Attributes,
		CreatedAt: i.CreatedAt.UTC(), UpdatedAt: i.UpdatedAt.UTC(),
	}
}

func pastInstanceOf(p *inspect.Past) wire.PastInstance {
	return wire.PastInstance{
		ID: p.ID, Workflow: p.Workflow, Definition: p.Definition, BusinessKey: p.BusinessKey, State: p.State, Open: p.Open,
		Version: p.Version, Newest: p.Newest, Data: raw(p.Data), Erased: p.Erased, CreatedAt: p.CreatedAt, UpdatedAt: p.UpdatedAt,
	}
}

func refOf(b *transitions.CommandRef) *wire.CommandRef {
	if b == nil {
		return nil
	}
	return &wire.CommandRef{Transition: b.Transition, Scope: b.Scope, Key: b.Key}
}

// CommandPage is a page of commands in flight.
type CommandPage struct {
	Commands []wire.CommandStatus `json:"commands"`
	Next     string               `json:"next,omitempty"` // the cursor of the next page, "" on the last
}

// PausedList is the workflows and the instances of which nothing new is begun.
type PausedList struct {
	Workflows []inspect.PausedWorkflow `json:"workflows"` // all, on every page
	Instances []inspect.PausedInstance `json:"instances"`
	Next      string                   `json:"next,omitempty"` // the cursor of the next page of instances, "" on the last
}

// SinkList is the sinks, by name.
type SinkList struct {
	Sinks []inspect.SinkInfo `json:"sinks"`
}

// SinkPage is the state of a sink, and a page of its cursors, by tenant.
type SinkPage struct {
	Sink    inspect.SinkInfo     `json:"sink"`
	Cursors []inspect.SinkCursor `json:"cursors"`
	Next    string               `json:"next,omitempty"` // the cursor of the next page, "" on the last
}

// DeadPage is a page of events that a sink has not got, by tenant, instance and
// position.
type DeadPage struct {
	Dead []inspect.DeadLetter `json:"dead"`
	Next string               `json:"next,omitempty"` // the cursor of the next page, "" on the last
}

// DeadChange is how many dead letters were redriven or skipped.
type DeadChange struct {
	Changed int64 `json:"changed"`
}

// Case is the whole of one instance, as an operator wants to see it.
type Case struct {
	Instance wire.InstanceView    `json:"instance"`
	InFlight []wire.CommandStatus `json:"in_flight"`        // the command whose outcome takes it on, and undos
	Earlier  int64                `json:"earlier,omitzero"` // transitions before those of the timeline
	Timeline []wire.Entry         `json:"timeline"`         // the newest ones, in order
	Chain    inspect.Verification `json:"chain"`            // of its audit rows
}

// caseOf is a case as the interface shows it.
func caseOf(c *inspect.Case) Case {
	return Case{Instance: viewOf(&c.View), InFlight: each(c.InFlight, operatedStatusOf), Earlier: c.Earlier,
		Timeline: each(c.Timeline, entryOf), Chain: c.Chain}
}

// raw makes stored JSON part of an answer. What is not there is null.
func raw(b []byte) jsontext.Value {
	if len(b) == 0 {
		return jsontext.Value("null")
	}
	return b
}
