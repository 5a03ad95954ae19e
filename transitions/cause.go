package transitions

import (
	"strings"
	"time"
)

// Cause is the kind of event that caused a transition.
type Cause string

// Causes, with the meaning of CausedBy.
const (
	CausedByCaller    Cause = "caller"    // a command over HTTP, in Go or in SQL, including scheduled ones
	CausedByTimer     Cause = "timer"     // a timer of the instance: its name
	CausedByChild     Cause = "child"     // completion of a child: its id
	CausedByParent    Cause = "parent"    // start by a parent: its id
	CausedByMessage   Cause = "message"   // a message: its consumer; the key is the message's id
	CausedByUndo      Cause = "undo"      // undo of an effect: the key of the effect
	CausedByRetention Cause = "retention" // a command abandoned because no node claimed it in time
	CausedByOperator  Cause = "operator"  // an operator paused, resumed, retried, resolved or abandoned
	CausedBySchedule  Cause = "schedule"  // a run of a schedule: its name; the key is the nominal time
	CausedByImport    Cause = "import"    // an import: its time as RFC 3339 in UTC
)

const automatic = "auto "

// WithAutomatic returns the stored cause of a command that has also taken automatic transitions: their names, in order.
func (c Cause) WithAutomatic(names []string) Cause {
	if len(names) == 0 {
		return c
	}
	if c != "" {
		c += " "
	}
	return c + automatic + Cause(strings.Join(names, ","))
}

// Automatic returns the names of the automatic transitions in a stored cause, and the cause without them.
func (c Cause) Automatic() (names []string, rest Cause) {
	before, list, found := strings.Cut(string(c), automatic)
	if !found {
		return nil, c
	}
	return strings.Split(list, ","), Cause(strings.TrimSuffix(before, " "))
}

// Imported returns the stored cause of an import.
func Imported(at time.Time) Cause {
	return CausedByImport + " " + Cause(at.UTC().Format(time.RFC3339Nano))
}

// HappenedAt returns the time of an import as the database stores it, to the microsecond, or zero for other stored causes.
func (c Cause) HappenedAt() time.Time {
	_, c = c.Automatic()
	kind, at, _ := strings.Cut(string(c), " ")
	if Cause(kind) != CausedByImport {
		return time.Time{}
	}
	happened, err := time.Parse(time.RFC3339Nano, at)
	if err != nil {
		return time.Time{}
	}
	return happened.Truncate(time.Microsecond)
}

// CauseOf returns the cause of a command with this scope and key, and its CausedBy. stored is the
// cause in its audit row, which operations and imports have because their scope does not imply it.
func CauseOf(stored Cause, scope, key string) (cause Cause, by string) {
	if _, stored = stored.Automatic(); stored != "" {
		kind, at, _ := strings.Cut(string(stored), " ")
		return Cause(kind), at
	}
	if consumer, is := strings.CutPrefix(scope, inboxScope); is {
		return CausedByMessage, consumer
	}
	own, is := strings.CutPrefix(scope, Reserved)
	if !is {
		return CausedByCaller, ""
	}
	kind, of, _ := strings.Cut(own, ":")
	switch kind {
	case "timer":
		_, timer, _ := strings.Cut(of, ":")
		return CausedByTimer, timer
	case "end":
		return CausedByChild, of
	case "child":
		return CausedByParent, of
	case "late":
		return CausedByRetention, ""
	case "schedule":
		return CausedBySchedule, of
	case "undo":
		return CausedByUndo, key
	}
	return CausedByCaller, ""
}

// ScheduleActor is the actor of the runs of schedules.
const ScheduleActor = Reserved + "schedule"

// ScheduleScope returns the scope of the runs of a schedule.
func ScheduleScope(name string) string { return ScheduleActor + ":" + name }
