package output

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/transitions"
)

// Instance prints the state of an instance.
func Instance(w io.Writer, v *wire.InstanceView) error {
	stands := "open"
	if !v.Open {
		stands = "closed"
	}
	if v.Paused {
		stands += ", paused"
	}
	lines := [][2]string{
		{"instance", v.ID.String()}, {"workflow", fmt.Sprintf("%s, version %d", v.Workflow, v.Definition)},
		{"business key", OrNone(v.BusinessKey)}, {"state", fmt.Sprintf("%s (%s), version %d", v.State, stands, v.Version)},
		{"created", Moment(v.CreatedAt)}, {"updated", Moment(v.UpdatedAt)},
	}
	if f := v.InFlight; f != nil {
		lines = append(lines, [2]string{"in flight", fmt.Sprintf("%s, scope %s, key %s", f.Transition, f.Scope, f.Key)})
	}
	if p := v.Parent; p != nil {
		name := p.BusinessKey
		if name == "" {
			name = p.Instance.String()
		}
		lines = append(lines, [2]string{"parent", fmt.Sprintf("%s %s", p.Workflow, name)})
	}
	for _, c := range v.StuckChildren {
		name := c.BusinessKey
		if name == "" {
			name = c.Instance.String()
		}
		lines = append(lines, [2]string{"stuck child", fmt.Sprintf("%s %s: %s", c.Workflow, name, c.Message)})
	}
	for _, c := range v.Deferred {
		lines = append(lines, [2]string{"deferred", fmt.Sprintf("%s, by the end of child %s", c.End, c.Child)})
	}
	for _, name := range slices.Sorted(maps.Keys(v.Attributes)) {
		lines = append(lines, [2]string{Visible(name), OrNone(v.Attributes[name])})
	}
	return Lines(w, 14, append(lines, [2]string{"data", OrNone(string(v.Data))}))
}

// Timers prints the timers of an instance and its scheduled commands.
func Timers(w io.Writer, v *wire.InstanceView) error {
	more := func(name string) bool { return slices.Contains(v.More, name) }
	err := Part(w, "timers", more("timers"), []string{"due", "timer", "transition"}, v.Timers, func(t *wire.Timer) []string {
		return []string{Moment(t.Due), t.Name, t.Transition}
	})
	if err != nil {
		return err
	}
	return Part(w, "scheduled", more("scheduled"), []string{"due", "transition", "scope", "key", "actor"}, v.Scheduled,
		func(s *wire.ScheduledCommand) []string {
			return []string{Moment(s.Due), s.Transition, s.Scope, s.Key, s.Actor}
		})
}

// Why returns the reason of a transition with the time of an import, or the versions of a migration.
func Why(transition string, cause transitions.Cause, by string, payload []byte, reason string) string {
	what := ""
	var versions struct{ From, To int }
	switch {
	case cause == transitions.CausedByImport:
		what = "imported, happened at " + by
	case transition == "pawl.migrated" && json.Unmarshal(payload, &versions) == nil && versions.To > 0: // else it is redacted
		what = fmt.Sprintf("version %d to %d", versions.From, versions.To)
	}
	if what != "" && reason != "" {
		what += ": "
	}
	return OrNone(what + reason)
}
