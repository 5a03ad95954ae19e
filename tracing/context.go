package tracing

import "strings"

// Context is a position in a trace: a traceparent of version 00, optionally followed by a space and
// a tracestate. This is also its stored form. "" means no trace.
type Context string

// Limits of W3C Trace Context. Longer tracestates need not be propagated.
const (
	traceparentLength = 55
	maxState          = 512
	maxStates         = 32 // members
)

// flags are the known flags: sampled and random trace id.
const flags = 0x03

// Of returns the context of the headers traceparent and tracestate. As required by section 4.3 of
// Trace Context, invalid headers are ignored: a traceparent that is malformed or repeated, together
// with its tracestate, and a tracestate that is too long.
func Of(traceparent, tracestate []string) Context {
	if len(traceparent) != 1 {
		return ""
	}
	parent, ok := parse(strings.Trim(traceparent[0], " \t"))
	if !ok {
		return ""
	}
	if state := stateOf(tracestate); state != "" {
		return Context(parent + " " + state)
	}
	return Context(parent)
}

// parse converts a traceparent to version 00. Of later versions it uses the prefix.
func parse(s string) (string, bool) {
	if len(s) < traceparentLength || s[2] != '-' || s[35] != '-' || s[52] != '-' {
		return "", false
	}
	version, trace, span, given := s[:2], s[3:35], s[36:52], s[53:traceparentLength]
	rest := s[traceparentLength:]
	switch {
	case !hexadecimal(version) || version == "ff" || version == "00" && rest != "" || rest != "" && rest[0] != '-':
	case !hexadecimal(trace) || !hexadecimal(span) || !hexadecimal(given):
	case strings.Trim(trace, "0") == "" || strings.Trim(span, "0") == "":
	default:
		const digits = "0123456789abcdef"
		low := strings.IndexByte(digits, given[1]) & flags
		return "00-" + trace + "-" + span + "-0" + digits[low:low+1], true
	}
	return "", false
}

func hexadecimal(s string) bool {
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// stateOf joins the headers of a tracestate. It returns "" if they are too long or not valid in a
// header.
func stateOf(headers []string) string {
	state := strings.Trim(strings.Join(headers, ","), " \t")
	if len(state) > maxState || strings.Count(state, ",") >= maxStates ||
		strings.ContainsFunc(state, func(r rune) bool { return r < ' ' || r > '~' }) {
		return ""
	}
	return state
}

// Traceparent returns the header of that name, or "".
func (c Context) Traceparent() string { return string(c[:min(len(c), traceparentLength)]) }

// Tracestate returns the header of that name, or "".
func (c Context) Tracestate() string { return string(c[min(len(c), traceparentLength+1):]) }

// ID returns the trace id as 32 hexadecimal digits, or "".
func (c Context) ID() string { return string(c[min(len(c), 3):min(len(c), 35)]) }

// Sampled reports whether the parent is sampled.
func (c Context) Sampled() bool {
	return len(c) >= traceparentLength && (c[traceparentLength-1]-'0')&1 == 1
}
