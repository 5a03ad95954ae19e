package inspect

import (
	"time"

	"github.com/pawlhq/pawl/transitions"
)

// MaxWaiting is how many timers and how many scheduled commands a View has at most.
const MaxWaiting = 100

// View is an instance with what waits for its time on it.
type View struct {
	transitions.Instance
	Timers        []Timer            // armed ones, the next first
	Scheduled     []ScheduledCommand // what callers have asked for later, the next first
	Stuck         []StuckCommand     // what waits for an operator, the longest waiting first
	MoreTimers    bool               // than MaxWaiting
	MoreScheduled bool               // than MaxWaiting
	MoreStuck     bool               // than MaxWaiting
}

// Timer is an armed timer of an instance.
type Timer struct {
	Name       string    `json:"name"`
	Transition string    `json:"transition"` // what it does
	Due        time.Time `json:"due"`
}

// ScheduledCommand is a command on an instance whose time has not come, or that
// nobody has decided since it came.
type ScheduledCommand struct {
	Transition string    `json:"transition"`
	Scope      string    `json:"scope"`
	Key        string    `json:"key"`
	Actor      string    `json:"actor"`
	Due        time.Time `json:"due"`
}
