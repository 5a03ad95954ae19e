package transitions

import (
	"strings"
	"time"
)

// Cause says what kind of thing has caused a transition.
type Cause string

// The causes. CausedBy names the one that it was, as far as there is a name.
const (
	CausedByCaller    Cause = "caller"    // an attempt over HTTP, in Go or in SQL, also one for a later time
	CausedByTimer     Cause = "timer"     // of the instance: the timer's name
	CausedByChild     Cause = "child"     // the end of an instance that this one has started: the child's id
	CausedByParent    Cause = "parent"    // the transition of another instance that has started this one: its id
	CausedByMessage   Cause = "message"   // from outside: the consumer; the key is the message's id
	CausedByUndo      Cause = "undo"      // an effect was taken back: the key of the effect
	CausedByRetention Cause = "retention" // its command was given up: no node claimed it in time
	CausedByOperator  Cause = "operator"  // an operator has paused, resumed, retried, resolved or abandoned
	CausedByImport    Cause = "import"    // it had happened before: when, as RFC 3339 in UTC
)

// Imported is the stored cause of what has happened at a time.
func Imported(at time.Time) Cause {
	return CausedByImport + " " + Cause(at.UTC().Format(time.RFC3339Nano))
}

// HappenedAt returns the time of an import as the database stores it, to the microsecond, and the zero time of any other stored cause.
func (c Cause) HappenedAt() time.Time {
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

// CauseOf is what a command with this scope and key comes from, and the name of
// that. stored is the cause in its audit row: there is one where the scope does not
// tell, which is so of what operators do and of imports.
func CauseOf(stored Cause, scope, key string) (cause Cause, by string) {
	if stored != "" {
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
	case "undo":
		return CausedByUndo, key
	}
	return CausedByCaller, ""
}
