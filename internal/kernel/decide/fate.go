package decide

import (
	"time"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Fate is what becomes of a message that was consumed.
type Fate int

// The fates of a message.
const (
	FateDone  Fate = iota
	FateDead       // it is on the list of dead messages
	FateLater      // it should come again
	FateOver       // it was done long ago, or can be stored nowhere
)

// FateOf judges the answer to this delivery. Where deliveries
// are counted, a message for an instance that does not exist yet comes again until its
// delivery number most.
func FateOf(m transitions.Message, r transitions.Receipt, err error, most int) Fate {
	if err == nil {
		if r.Refused() && r.Version == 0 {
			return FateDead
		}
		return FateDone // what has failed after it was accepted is the workflow's to deal with
	}
	switch code := workflow.CodeOf(err); {
	case code == workflow.KeyExpired:
		return FateOver
	case code == workflow.InstanceNotFound && m.Delivery > 0 && m.Delivery < most:
		return FateLater
	case code == workflow.Paused && m.Delivery == 0:
		return FateDead
	case code == workflow.Internal || !code.Info().Retry:
		return FateDead
	default:
		return FateLater
	}
}

// IgnoredMessage is the answer to a message about which there is nothing to be done.
func IgnoredMessage() transitions.Receipt {
	return transitions.Receipt{Status: 200, Body: []byte(`{"ignored":true}`)}
}

// AnswerMessage is the answer of the command that the message has become before.
// MessageReused: another message of its id has.
func AnswerMessage(m transitions.Message, r *transitions.Record, now time.Time) (transitions.Receipt, error) {
	if r.Fingerprint != m.Hash() {
		return transitions.Receipt{}, MessageReused()
	}
	return Classify(r, r.Fingerprint, now).Answer(r)
}

// MessageReused is the error of a message whose id belongs to another one.
func MessageReused() error {
	return workflow.Errorf(workflow.MessageReused, "this message id was used with another payload; the sender has given two messages one id")
}
