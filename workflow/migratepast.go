package workflow

import (
	"maps"
	"slices"
)

// checkPast looks for what the new version asks of the time before the migration, and the old one did not keep: who is excluded for what
// he has done, and which effects a later failure undoes.
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
				"and nobody is excluded for it", name, c.To.Version, c.From.Version)
		}
	}
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
