package decide

import (
	"time"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Fate is the result of the delivery of a message.
type Fate int

// Fates.
const (
	FateDone  Fate = iota
	FateDead       // it is on the list of dead messages
	FateLater      // it should come again
	FateOver       // it was done long ago, or can be stored nowhere
)

// FateOf returns the fate of a delivery with this answer. If deliveries are counted, a message for an unknown instance is redelivered until
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

// IgnoredMessage returns the answer to an ignored message.
func IgnoredMessage() transitions.Receipt {
	return transitions.Receipt{Status: 200, Body: []byte(`{"ignored":true}`)}
}

// AnswerMessage returns the answer of the command that the message has become before. Error: MessageReused if another message has its id.
func AnswerMessage(m transitions.Message, r *transitions.Record, now time.Time) (transitions.Receipt, error) {
	if r.Fingerprint != m.Hash() {
		return transitions.Receipt{}, MessageReused()
	}
	return Classify(r, r.Fingerprint, now).Answer(r)
}

// MessageReused returns the error of a message whose id belongs to another message.
func MessageReused() error {
	return workflow.Errorf(workflow.MessageReused, "this message id was used with another payload; the sender has given two messages one id")
}
