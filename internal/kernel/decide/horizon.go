package decide

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Keep is the retention time of one command's key, where its caller or its action
// has asked for one. Zero is the workflow's.
type Keep struct {
	Replay    time.Duration // of the answer, as the caller asked
	Tombstone time.Duration // after that, as the caller asked
	Answer    time.Duration // of the answer, at least, as the workflow's action asked
}

// Until says until when an answer is replayed that is given now. h are the
// workflow's horizons, resolved.
func (k Keep) Until(h workflow.Horizons, now time.Time) time.Time {
	return now.Add(max(cmp.Or(k.Replay, h.Replay), k.Answer))
}

// LateScope begins the scope of a command that retention makes when it gives up an
// activity because no node knows its workflow. The first node that knows the workflow
// again decides it: the instance goes to the activity's failure state.
const LateScope = transitions.Reserved + "late:"

// lateRef names that command. version is the one that accepted the activity.
func lateRef(transition string, instance uuid.UUID, version int64) transitions.CommandRef {
	return transitions.CommandRef{Transition: transition, Scope: LateScope + instance.String(), Key: strconv.FormatInt(version, 10)}
}

// AbandonedAnswer is the answer to such a command.
func AbandonedAnswer() []byte {
	return transitions.ProblemOf(workflow.Errorf(workflow.CommandAbandoned, "nobody took it in time, and no node knows its workflow")).JSON()
}

// abandoned decides whether a command is given up because no node claimed it for
// longer than its answer would be replayed. By then its caller has stopped asking, and
// would not expect the effect. It has done nothing. replay is the workflow's horizon.
//
// Only commands of callers are given up, at their first claim, and not while a pause
// holds them. A message is not: its sender was told that it is accepted, and does not
// ask again.
func (f *InFlight) abandoned(replay time.Duration, now time.Time) (v Verdict, is bool) {
	if strings.HasPrefix(f.Scope, LateScope) {
		return failedFor(workflow.FailureUntaken, "nobody took it in time, and no node knew its workflow", 0, false), true
	}
	if f.Phase != transitions.Scheduled && f.Phase != transitions.Working ||
		strings.HasPrefix(f.Scope, transitions.Reserved) || strings.HasPrefix(f.Scope, transitions.InboxScope("")) ||
		f.RunAt.IsZero() || f.Attempt > 1 || f.Paused {
		return Verdict{}, false
	}
	asked, err := f.Asked()
	if err != nil {
		return Undecidable(err), true
	}
	if replay = cmp.Or(time.Duration(asked.Replay), replay); now.Before(f.RunAt.Add(replay)) {
		return Verdict{}, false
	}
	message := "it was due at " + f.RunAt.UTC().Format(time.RFC3339) + ", and nobody took it for " + replay.String()
	return failedFor(workflow.FailureUntaken, message, 0, false), true
}
