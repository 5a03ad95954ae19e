package sink

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"
)

// Kind is the kind of a failure, which determines how the relay reacts. It is stable, stored and
// counted.
type Kind string

// Kinds of failures.
const (
	// Temporary failures concern this event. A later attempt may succeed. The receiver may have the
	// event.
	Temporary Kind = "temporary"
	// Permanent failures concern this event. No attempt can succeed, so it is parked at once.
	Permanent Kind = "permanent"
	// Unavailable failures concern the receiver: it is unreachable, misconfigured or overloaded,
	// and every other event would fail too. The whole sink waits. Attempts still count, because one
	// event that crashes the receiver looks the same.
	Unavailable Kind = "unavailable"
	// Gone failures concern the receiver: it refuses all further events. The sink is paused until
	// an operator resumes it.
	Gone Kind = "gone"
	// Held events were not tried, because an earlier event of the instance or the whole sink
	// failed. This is not counted as an attempt.
	Held Kind = "held"
)

// Whole reports whether a failure concerns the receiver instead of the event.
func (k Kind) Whole() bool { return k == Unavailable || k == Gone }

// MaxMessage is the maximum length of a failure's message in bytes.
const MaxMessage = 1000

// Failure describes why an event was not delivered.
type Failure struct {
	Kind Kind
	// Message is shown to operators and stored. It contains no secrets, no control characters, and
	// at most [MaxMessage] bytes.
	Message string
	// RetryAfter is the delay that the receiver requests. Zero means none.
	RetryAfter time.Duration
	// Cause is logged. Optional.
	Cause error
}

// Fail returns a failure with a printable message. The caller omits secrets, such as URLs with
// tokens.
func Fail(kind Kind, cause error, format string, args ...any) *Failure {
	return &Failure{Kind: kind, Message: Printable(fmt.Sprintf(format, args...), MaxMessage), Cause: cause}
}

// CutOff returns the failure of an event that was in progress when ctx ended.
func CutOff(ctx context.Context) *Failure {
	cause := context.Cause(ctx)
	return Fail(Temporary, cause, "interrupted before the receiver responded: %v", cause)
}

// Error returns the kind and the message.
func (f *Failure) Error() string { return string(f.Kind) + ": " + f.Message }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Cause }

// Printable makes untrusted text storable: valid UTF-8 without control characters, at most limit
// bytes, cut between characters.
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
