package api

import (
	"slices"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
)

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

func optionsOf(id uuid.UUID, x *inspect.Explanation) wire.Options {
	return wire.Options{Instance: id, Stuck: stuckOf(x.Stuck), Transitions: each(x.Transitions, func(o *inspect.Option) wire.Option {
		return wire.Option{Transition: o.Transition, Allowed: o.Allowed, To: o.To,
			Reasons: each(o.Reasons, func(r *inspect.Reason) wire.WhyNot { return wire.WhyNot(*r) })}
	})}
}

func childOf(i *inspect.Child) wire.Child {
	c := wire.Child{Instance: instanceOf(&i.Instance), Stuck: i.Stuck, Deferred: i.Deferred}
	if i.Links.Parent != nil {
		c.End = i.Links.Parent.End
	}
	return c
}
