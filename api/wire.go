package api

import (
	"slices"
	"time"

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

// raw makes stored JSON part of an answer. What is not there is null.
func raw(b []byte) jsontext.Value {
	if len(b) == 0 {
		return jsontext.Value("null")
	}
	return b
}

// Settled is the answer to an operation on a command.
type Settled struct {
	Operation transitions.Action `json:"operation"`
	Scope     string             `json:"scope"`
	Key       string             `json:"key"`
	At        time.Time          `json:"at"`
	Position  int64              `json:"position,omitzero"` // in the log, of what it did to the instance
}

// each converts a list; nil is an empty one.
func each[A, B any](list []A, to func(*A) B) []B {
	out := make([]B, len(list))
	for i := range list {
		out[i] = to(&list[i])
	}
	return out
}

func viewOf(v *inspect.View) wire.InstanceView {
	out := wire.InstanceView{
		Instance: instanceOf(&v.Instance), Stuck: stuckOf(v.Stuck),
		Timers:    each(v.Timers, func(t *inspect.Timer) wire.Timer { return wire.Timer(*t) }),
		Scheduled: each(v.Scheduled, func(s *inspect.ScheduledCommand) wire.ScheduledCommand { return wire.ScheduledCommand(*s) }),
		Effects:   each(v.Links.Effects, func(e *transitions.Effect) wire.CommandRef { return *refOf(&e.CommandRef) }),
	}
	out.StuckChildren = each(v.StuckChildren, func(c *inspect.StuckChild) wire.StuckChild {
		return wire.StuckChild{Instance: c.Instance, Workflow: c.Workflow, BusinessKey: c.BusinessKey, StuckCommand: wire.StuckCommand(c.StuckCommand)}
	})
	out.Deferred = each(v.Links.Deferred, func(c *transitions.Completion) wire.Completion { return wire.Completion(*c) })
	if p := v.Parent; p != nil {
		out.Parent = &wire.Parent{Workflow: p.Workflow, Instance: p.Instance, BusinessKey: p.BusinessKey, End: p.End}
	}
	slices.Reverse(out.Effects)
	moreEffects, moreDeferred := len(out.Effects) > inspect.MaxWaiting, len(out.Deferred) > inspect.MaxWaiting
	out.Deferred = out.Deferred[:min(len(out.Deferred), inspect.MaxWaiting)]
	out.Effects = out.Effects[:min(len(out.Effects), inspect.MaxWaiting)]
	for _, list := range []struct {
		name string
		more bool
	}{{"timers", v.MoreTimers}, {"scheduled", v.MoreScheduled}, {"stuck", v.MoreStuck}, {"stuck_children", v.MoreChildren},
		{"deferred", moreDeferred}, {"effects", moreEffects}} {
		if list.more {
			out.More = append(out.More, list.name)
		}
	}
	return out
}

func stuckOf(list []inspect.StuckCommand) []wire.StuckCommand {
	return each(list, func(s *inspect.StuckCommand) wire.StuckCommand { return wire.StuckCommand(*s) })
}
