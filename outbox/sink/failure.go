package sink

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"
)

// Kind says what a failure is about, and so what is to be done. It is a stable
// name, to be stored and counted.
type Kind string

// The kinds of failures.
const (
	// Temporary is about this event: the same attempt may succeed later. Whether
	// the receiver has the event is not known.
	Temporary Kind = "temporary"
	// Permanent is about this event: no attempt will ever succeed. It is to be
	// parked at once.
	Permanent Kind = "permanent"
	// Unavailable is about the receiver: it cannot be reached, is misconfigured or
	// takes nothing now, and every other event would fare the same. The whole sink
	// has to wait. Attempts count all the same: a receiver that one event makes
	// fall over looks like this too.
	Unavailable Kind = "unavailable"
	// Gone is about the receiver: it wants no more events. Nothing is to be sent
	// until an operator says so.
	Gone Kind = "gone"
	// Held is no failure of this event: it was not tried, because an earlier event
	// of its instance, or the whole sink, failed. It does not count as an attempt.
	Held Kind = "held"
)

// Whole reports whether a failure is about the receiver and not about the
// event.
func (k Kind) Whole() bool { return k == Unavailable || k == Gone }

// MaxMessage is the length of the longest message of a failure, in bytes.
const MaxMessage = 1000

// Failure says why an event was not delivered.
type Failure struct {
	Kind Kind
	// Message is for an operator, and fit to be stored: it holds no secret, no
	// control characters, and no more than [MaxMessage] bytes.
	Message string
	// RetryAfter is how long the receiver asks to be left alone; 0 when it does not
	// say.
	RetryAfter time.Duration
	// Cause is for the log; nil where there is none.
	Cause error
}

// Fail makes a failure. Its message is made fit to be stored; what must not be
// seen in it, such as an address with a token, the caller leaves out.
func Fail(kind Kind, cause error, format string, args ...any) *Failure {
	return &Failure{Kind: kind, Message: Printable(fmt.Sprintf(format, args...), MaxMessage), Cause: cause}
}

// CutOff is the failure of an event that was under way when the context ended.
func CutOff(ctx context.Context) *Failure {
	cause := context.Cause(ctx)
	return Fail(Temporary, cause, "broken off before the receiver answered: %v", cause)
}

// Error returns the kind and the message.
func (f *Failure) Error() string { return string(f.Kind) + ": " + f.Message }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Cause }

// Printable makes a foreign text fit to be stored and shown: valid UTF-8 without
// control characters, at most limit bytes, cut between two characters.
func Printable(s string, limit int) string {
	var b strings.Builder
	for _, r := range s { // invalid bytes become U+FFFD
		switch {
		case unicode.IsSpace(r):
			r = ' '
		case !unicode.IsPrint(r):
			r = unicode.ReplacementChar
		}
		if b.Len()+len(string(r)) > limit {
			break
		}
		b.WriteRune(r)
	}
	return b.String()
}
