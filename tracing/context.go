package tracing

import "strings"

// Context says where in a trace something happens: a traceparent of version 00 and, where
// there is one, after a blank the tracestate. "" is nowhere. So it is stored.
type Context string

// The bounds of W3C Trace Context. A tracestate of this length has to be passed on; one that
// is longer is not.
const (
	traceparentLength = 55
	maxState          = 512
	maxStates         = 32 // its members
)

// flags are those that there are: sampled, and that the trace's id is random.
const flags = 0x03

// Of is the context that the headers traceparent and tracestate name. What is invalid
// counts as not given, as section 4.3 of Trace Context asks: a traceparent that is malformed or
// given twice, and with it its tracestate; a tracestate that is too long.
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

// parse returns a traceparent as version 00 has it. Of a later version the beginning counts.
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

// stateOf joins the headers of a tracestate; "" for none, and for one that is longer than has
// to be passed on or could not be a header.
func stateOf(headers []string) string {
	state := strings.Trim(strings.Join(headers, ","), " \t")
	if len(state) > maxState || strings.Count(state, ",") >= maxStates ||
		strings.ContainsFunc(state, func(r rune) bool { return r < ' ' || r > '~' }) {
		return ""
	}
	return state
}

// Traceparent is the header of that name, "" of nowhere.
func (c Context) Traceparent() string { return string(c[:min(len(c), traceparentLength)]) }

// Tracestate is the header of that name, "" where there is none.
func (c Context) Tracestate() string { return string(c[min(len(c), traceparentLength+1):]) }

// ID is the trace's, in 32 hexadecimal digits; "" of nowhere.
func (c Context) ID() string { return string(c[min(len(c), 3):min(len(c), 35)]) }

// Sampled reports whether the trace is recorded there.
func (c Context) Sampled() bool {
	return len(c) >= traceparentLength && (c[traceparentLength-1]-'0')&1 == 1
}
