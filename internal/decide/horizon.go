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

// Keep is how long a key is good for where somebody has said it of the one
// command. Zero is as the workflow says.
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

// LateScope begins the scopes of commands by which retention has an instance go on
// whose command it has given up, because no node knew the workflow: whoever knows it
// again takes the instance to the activity's failure state, and does nothing else.
const LateScope = transitions.Reserved + "late:"

// lateRef is that command of an instance, where the version that the activity's
// transition made says which one it was.
func lateRef(transition string, instance uuid.UUID, version int64) transitions.CommandRef {
	return transitions.CommandRef{Transition: transition, Scope: LateScope + instance.String(), Key: strconv.FormatInt(version, 10)}
}

// AbandonedAnswer is the answer to such a command.
func AbandonedAnswer() []byte {
	return transitions.ProblemOf(workflow.Errorf(workflow.CommandAbandoned, "nobody took it in time, and no node knows its workflow")).JSON()
}

// abandoned decides whether a command is given up because nobody took it for
// longer than its answer would be replayed: then nobody asks any more, and what it
// does would surprise. It has done nothing. replay is the workflow's horizon.
//
// Only commands of callers are, and those of which this is the first claim: who
// had one before, or waits for a pause to end, is not forgotten. The sender of a
// message is not such a caller: he was told that it is taken, and does not ask again.
func (f *InFlight) abandoned(replay time.Duration, now time.Time) (v Verdict, is bool) {
	if strings.HasPrefix(f.Scope, LateScope) {
		return failedFor(workflow.FailureUntaken, "nobody took it in time, and no node knew its workflow", 0, false), true
	}
	if f.Phase != transitions.Scheduled && f.Phase != transitions.Working || strings.HasPrefix(f.Scope, transitions.Reserved) || strings.HasPrefix(f.Scope, transitions.InboxScope("")) ||
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
	return failedFor(workflow.FailureUntaken, "it was due at "+f.RunAt.UTC().Format(time.RFC3339)+", and nobody took it for "+replay.String(), 0, false), true
}
