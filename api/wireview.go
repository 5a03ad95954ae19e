package api

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// What an instance is shown with. What the members mean that have no comment here stands
// with the types of package inspect, whose fields these are, in order.
type (
	// InstanceView is an instance by itself, with what waits on it: of each list
	// inspect.MaxWaiting at most.
	InstanceView struct {
		Instance
		Timers    []Timer            `json:"timers,omitempty"`
		Scheduled []ScheduledCommand `json:"scheduled,omitempty"`
		Stuck     []StuckCommand     `json:"stuck,omitempty"`
		// Effects are the commands whose effects would be undone, in that order: the newest first.
		Effects []CommandRef `json:"effects,omitempty"`
		More    []string     `json:"more,omitempty"` // the lists of these that have only their first hundred
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

func viewOf(v *inspect.View) InstanceView {
	out := InstanceView{
		Instance: instanceOf(&v.Instance), Stuck: stuckOf(v.Stuck),
		Timers:    each(v.Timers, func(t *inspect.Timer) Timer { return Timer(*t) }),
		Scheduled: each(v.Scheduled, func(s *inspect.ScheduledCommand) ScheduledCommand { return ScheduledCommand(*s) }),
		Effects:   each(v.Links.Effects, func(e *transitions.Effect) CommandRef { return *refOf(&e.CommandRef) }),
	}
	slices.Reverse(out.Effects)
	moreEffects := len(out.Effects) > inspect.MaxWaiting
	out.Effects = out.Effects[:min(len(out.Effects), inspect.MaxWaiting)]
	for _, list := range []struct {
		name string
		more bool
	}{{"timers", v.MoreTimers}, {"scheduled", v.MoreScheduled}, {"stuck", v.MoreStuck}, {"effects", moreEffects}} {
		if list.more {
			out.More = append(out.More, list.name)
		}
	}
	return out
}

func stuckOf(list []inspect.StuckCommand) []StuckCommand {
	return each(list, func(s *inspect.StuckCommand) StuckCommand { return StuckCommand(*s) })
}

func optionsOf(id uuid.UUID, x *inspect.Explanation) Options {
	return Options{Instance: id, Stuck: stuckOf(x.Stuck), Transitions: each(x.Transitions, func(o *inspect.Option) Option {
		return Option{Transition: o.Transition, Allowed: o.Allowed, To: o.To,
			Reasons: each(o.Reasons, func(r *inspect.Reason) WhyNot { return WhyNot(*r) })}
	})}
}
