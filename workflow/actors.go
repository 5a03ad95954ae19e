package workflow

import (
	"maps"
	"slices"
	"strings"
)

// Transitions exclude the actors of others (NotBy, NotByLast), so an instance keeps those actors under a key: the name of the transition,
// or with Since a key of its own, whose list begins anew with each round.

// round is what actors are kept for by a Since.
type round struct {
	key        string
	transition string
	since      []string
}

const sinceMark = ".since." // declared names have no dot

// ActorsKey is the key under which the actors of a transition are kept who are excluded from the step.
func (s *Step) ActorsKey(transition string) string {
	if len(s.Since) == 0 {
		return transition
	}
	return transition + sinceMark + strings.Join(slices.Compact(slices.Sorted(slices.Values(s.Since))), ".")
}

// watch records which actors the step excludes.
func (w *Workflow) watch(s *Step) {
	for _, n := range slices.Concat(s.NotBy, s.NotByLast) {
		key := s.ActorsKey(n)
		if len(s.Since) == 0 {
			w.watched[key] = true
		} else if !w.keepsRound(key) {
			w.rounds = append(w.rounds, round{key, n, s.Since})
		}
		w.watchedLast[key] = w.watchedLast[key] || slices.Contains(s.NotByLast, n)
	}
}

func (w *Workflow) keepsRound(key string) bool {
	return slices.ContainsFunc(w.rounds, func(r round) bool { return r.key == key })
}

// Watched reports whether some transition excludes the actors of the named one, so that they must be remembered.
func (w *Workflow) Watched(transition string) bool { return len(w.ActorsKeys(transition)) > 0 }

// ActorsKeys returns the keys under which the actors of a transition are kept.
func (w *Workflow) ActorsKeys(transition string) (keys []string) {
	if w.watched[transition] {
		keys = append(keys, transition)
	}
	for _, r := range w.rounds {
		if r.transition == transition {
			keys = append(keys, r.key)
		}
	}
	return keys
}

// NewRound returns the keys whose actors no longer count after a transition.
func (w *Workflow) NewRound(transition string) (keys []string) {
	for _, r := range w.rounds {
		if slices.Contains(r.since, transition) {
			keys = append(keys, r.key)
		}
	}
	return keys
}

// WatchedLast reports whether some transition excludes the last of the actors that are kept under the key.
func (w *Workflow) WatchedLast(key string) bool { return w.watchedLast[key] }

// checkRounds finds actors of a round that the new version excludes and the old one does not keep by that round.
func (c *migrationCheck) checkRounds(say func(name, format string, args ...any)) {
	renamed := slices.Collect(maps.Values(c.plan.names))
	for _, r := range c.To.rounds {
		known := len(c.From.byName[r.transition]) > 0
		if (known || slices.Contains(renamed, r.transition)) && (!known || !c.From.keepsRound(r.key) ||
			c.To.watchedLast[r.key] && !c.From.watchedLast[r.key]) {
			say(r.transition, "leaves open who did %q since %s, which version %d asks for and version %d does not keep: say Forget, and no "+
				"actor is excluded for it", r.transition, strings.Join(r.since, ", "), c.To.Version, c.From.Version)
		}
	}
	for _, r := range c.From.rounds {
		if len(c.To.byName[r.transition]) == 0 && !slices.Contains(slices.Collect(maps.Keys(c.plan.names)), r.transition) &&
			len(c.To.watched)+len(c.To.rounds) > 0 {
			say(r.transition, "leaves open who did %q, which version %d excluded and version %d does not have: say Forget, and no actor is "+
				"excluded for it", r.transition, c.From.Version, c.To.Version)
		}
	}
}

// keepRounds removes the actors of rounds that one of the versions does not keep.
func (m *Migration) keepRounds(actors map[string][]string) {
	maps.DeleteFunc(actors, func(key string, _ []string) bool {
		return strings.Contains(key, sinceMark) && (!m.From.keepsRound(key) || !m.To.keepsRound(key))
	})
}
