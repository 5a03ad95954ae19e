package decide

import (
	"maps"
	"slices"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Actors of transitions that exclude each other, by transition. The actor who requested an activity is kept under the name of its start
// until it completes: a failure without effect does not count. The newest actor is the last.

func excluded(step *workflow.Step, actors map[string][]string, actor string) *workflow.Error {
	for _, other := range step.NotBy {
		if slices.Contains(actors[other], actor) || slices.Contains(actors[other+accepted], actor) {
			return workflow.Errorf(workflow.SeparationOfDuties, "%q and %q must be done by different actors", step.Name, other)
		}
	}
	for _, other := range step.NotByLast {
		before := actors[other]
		if last := len(before) > 0 && before[len(before)-1] == actor; last || slices.Contains(actors[other+accepted], actor) {
			return workflow.Errorf(workflow.SeparationOfDuties, "%q and the last %q must be done by different actors", step.Name, other)
		}
	}
	return nil
}

// actors returns the actors after the change, without modifying those of the instance.
func (c *change) actors() map[string][]string {
	actors := c.inst.Actors
	if left := c.leftInFlight(); left != nil && c.w.Watched(left.Transition) {
		actors = c.ended(actors, left.Transition, !undoable(c.w, left.Transition))
	}
	if c.step == nil {
		if c.p.by != "" && c.name == c.p.Transition+notUndone && c.w.Watched(c.p.Transition) {
			actors = c.did(actors, c.p.Transition, c.p.by)
		}
		return actors
	}
	name := c.step.Name
	switch {
	case !c.w.Watched(name):
	case c.name == name && c.step.Work == nil:
		return c.did(actors, name, c.p.Actor)
	case c.name == name:
		return c.ended(c.did(actors, name, c.p.Actor), name, true)
	case c.name == name+accepted:
		return c.did(actors, c.name, c.p.Actor)
	default:
		return c.ended(actors, name, c.remains)
	}
	return actors
}

// leftInFlight returns the command in flight whose in-between state the instance leaves without it, or nil.
func (c *change) leftInFlight() *transitions.CommandRef {
	left := c.inst.Links.InFlight
	if left == nil || c.plan != nil || c.out.To == c.inst.State || left.Scope == c.p.Scope && left.Key == c.p.Key {
		return nil
	}
	return left
}

// ended returns the actors after an activity has completed. done: its requester counts as having done it.
func (c *change) ended(actors map[string][]string, name string, done bool) map[string][]string {
	asked := actors[name+accepted]
	if asked == nil {
		return actors
	}
	actors = maps.Clone(actors)
	delete(actors, name+accepted)
	for _, actor := range asked {
		if done {
			actors = c.did(actors, name, actor)
		}
	}
	return actors
}

// did returns the actors after a transition.
func (c *change) did(actors map[string][]string, transition, actor string) map[string][]string {
	list := actors[transition]
	i := slices.Index(list, actor)
	if i >= 0 && (i == len(list)-1 || !c.w.WatchedLast(transition)) {
		return actors
	}
	out := make(map[string][]string, len(actors)+1)
	maps.Copy(out, actors)
	others := slices.DeleteFunc(slices.Clone(list), func(a string) bool { return a == actor })
	out[transition] = append(others, actor)
	return out
}

// undoable reports whether all activities of a name can be undone.
func undoable(w *workflow.Workflow, activity string) bool {
	return !slices.ContainsFunc(w.Moving(activity), func(s *workflow.Step) bool { return s.Work != nil && !s.Work.Undoable })
}
