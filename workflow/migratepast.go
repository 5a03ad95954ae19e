package workflow

import (
	"maps"
	"slices"
)

// checkPast finds what the new version needs from the time before the migration and the old one did not keep: actors that are excluded by
// earlier transitions, and effects that a later failure undoes.
func (c *migrationCheck) checkPast() {
	needed := map[string]bool{}
	say := func(name, format string, args ...any) {
		needed[name] = true
		if !slices.Contains(c.plan.forgotten, name) {
			c.add(format, args...)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.To.watched)) {
		kept := c.From.watched[name] && (c.From.watchedLast[name] || !c.To.watchedLast[name])
		if len(c.From.byName[name]) > 0 && !kept {
			say(name, "leaves open who did %q, which version %d asks for (NotBy, NotByLast) and version %d does not keep: say Forget, "+
				"and no actor is excluded for it", name, c.To.Version, c.From.Version)
		}
	}
	c.checkNames(say)
	c.checkRounds(say)
	for _, s := range c.From.Steps {
		if s.Work != nil && c.To.UndoneByOthers(s.Name) && !c.From.UndoneByOthers(s.Name) {
			say(s.Name, "leaves effects of %q behind, which version %d undoes after a failure and version %d does not keep: say Forget, "+
				"and they stay", s.Name, c.To.Version, c.From.Version)
		}
	}
	for _, name := range c.plan.forgotten {
		if !needed[name] {
			c.add("forgets %q, of which version %d needs nothing that version %d does not keep", name, c.To.Version, c.From.Version)
		}
	}
}

// checkNames looks for those who were excluded under a name that the new version does not have: it may ask for them under another one.
func (c *migrationCheck) checkNames(say func(name, format string, args ...any)) {
	for _, old := range slices.Sorted(maps.Keys(c.plan.names)) {
		now := c.plan.names[old]
		switch {
		case !c.From.watched[old]:
			c.add("maps transition %q, of which version %d does not keep who did it", old, c.From.Version)
		case len(c.To.byName[old]) > 0:
			c.add("maps transition %q, which version %d has too", old, c.To.Version)
		case !c.To.watched[now]:
			c.add("maps transition %q to %q, of which version %d does not ask who did it", old, now, c.To.Version)
		case c.To.watchedLast[now] && (!c.From.watchedLast[old] || c.namesFor(now) > 1):
			c.add("maps transition %q to %q, whose last actor is not recorded", old, now)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.From.watched)) {
		if _, mapped := c.plan.names[name]; !mapped && len(c.To.byName[name]) == 0 && len(c.To.watched) > 0 {
			say(name, "leaves open who did %q, which version %d excluded, and by which name version %d asks for them: say Transition, or Forget, "+
				"and no actor is excluded for it", name, c.From.Version, c.To.Version)
		}
	}
}

// namesFor is how many transitions of the old version the new one knows by a name.
func (c *migrationCheck) namesFor(now string) int {
	n := min(len(c.From.byName[now]), 1)
	for _, to := range c.plan.names {
		if to == now {
			n++
		}
	}
	return n
}

// Actors are those who did what others exclude them from, by the names of the new version.
func (m *Migration) Actors(before map[string][]string) map[string][]string {
	after := maps.Clone(before)
	for _, old := range slices.Sorted(maps.Keys(m.plan.names)) {
		now := m.plan.names[old]
		for _, actor := range before[old] {
			if !slices.Contains(after[now], actor) {
				after[now] = append(slices.Clip(after[now]), actor)
			}
		}
		delete(after, old)
	}
	m.keepRounds(after)
	return after
}
