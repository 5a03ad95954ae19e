package transitions

import (
	"bytes"
	"errors"
	"io"
	"time"

	"github.com/go-json-experiment/json/jsontext"

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

// Fate judges the answer to this delivery. Of a message whose deliveries are counted
// the first ones, fewer than most, wait for an instance that is not there yet.
func (m Message) Fate(r Receipt, err error, most int) Fate {
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
func IgnoredMessage() Receipt { return Receipt{Status: 200, Body: []byte(`{"ignored":true}`)} }

// AnswerOf is the answer of the command that the message has become before.
// MessageReused: another message of its id has.
func (m Message) AnswerOf(r *Record, now time.Time) (Receipt, error) {
	if r.Fingerprint != m.Hash() {
		return Receipt{}, m.Reused()
	}
	return r.Answer(Classify(r, r.Fingerprint, now))
}

// Reused is the error of a message whose id belongs to another one.
func (m Message) Reused() error {
	return workflow.Errorf(workflow.MessageReused, "this message id was used with another payload; the sender has given two messages one id")
}

// typeOf is what a sender calls a message: the member "type" of its body, as in
// Standard Webhooks and CloudEvents. "" where there is none, or none that can be
// stored.
func typeOf(body []byte) string {
	d := jsontext.NewDecoder(bytes.NewReader(body))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return ""
	}
	for {
		name, err := d.ReadToken()
		if err != nil || name.Kind() != '"' {
			return ""
		}
		if name.String() != "type" {
			if err := d.SkipValue(); err != nil {
				return ""
			}
			continue
		}
		value, err := d.ReadToken()
		if err != nil && !errors.Is(err, io.EOF) || value.Kind() != '"' || TextProblem(value.String(), MaxKey) != "" {
			return ""
		}
		return value.String()
	}
}
