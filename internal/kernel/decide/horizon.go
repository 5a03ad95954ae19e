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

// LateScope is the prefix of the scope of a command that retention creates when it abandons an activity because no node knows its workflow.
// The next node that knows the workflow decides it: the instance moves to the activity's failure state.
const LateScope = transitions.Reserved + "late:"

// lateRef names that command. version is the one that accepted the activity.
func lateRef(transition string, instance uuid.UUID, version int64) transitions.CommandRef {
	return transitions.CommandRef{Transition: transition, Scope: LateScope + instance.String(), Key: strconv.FormatInt(version, 10)}
}

// AbandonedAnswer is the answer to such a command.
func AbandonedAnswer() []byte {
	return transitions.ProblemOf(workflow.Errorf(workflow.CommandAbandoned, "nobody took it in time, and no node knows its workflow")).JSON()
}

// abandoned decides whether a command expires because no node claimed it for longer than its answer would be replayed. By then its caller
// has stopped retrying and does not expect the effect, and no attempt has begun. replay is the workflow's retention period for answers.
//
// Only commands of callers expire, at their first claim, and not during a pause. A message does not expire: its sender was told that it is
// accepted, and does not retry.
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
