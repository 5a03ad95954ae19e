package sink

import (
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/pawlhq/pawl/transitions"
)

// ContentType is the media type of delivered events: CloudEvents 1.0 in structured mode.
const ContentType = "application/cloudevents+json"

// MessageID returns the id by which receivers recognize repetitions:
// "{tenant}:{position}-{ordinal}", prefixed with the source and a colon unless the source is the
// default. It is the same in every attempt and for every sink, and consists of visible ASCII
// without dots; source and tenant are escaped ([Escape]).
func MessageID(e *transitions.Event) string {
	id := Escape(e.Tenant) + ":" + e.ID()
	if e.Source == "" || e.Source == transitions.DefaultSource {
		return id
	}
	return Escape(e.Source) + ":" + id
}

// Escape encodes text as letters, digits, '-' and '_'; other bytes become "%XX". It is injective.
func Escape(s string) string {
	return encode(s, func(c byte) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
	})
}

// headerValue encodes text for a header as required by CloudEvents (HTTP binding 1.0.2, section
// 3.1.3.2): spaces, quotes, percent signs and all but visible ASCII are percent-encoded.
func headerValue(s string) string {
	return encode(s, func(c byte) bool { return c > ' ' && c < 0x7f && c != '"' && c != '%' })
}

// encode percent-encodes all bytes that are not plain.
func encode(s string, plain func(byte) bool) string {
	clean := 0
	for clean < len(s) && plain(s[clean]) {
		clean++
	}
	if clean == len(s) {
		return s
	}
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	b.WriteString(s[:clean])
	for _, c := range []byte(s[clean:]) {
		if plain(c) {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		}
	}
	return b.String()
}

// Trace returns the W3C Trace Context headers of an event's delivery, by name. The attributes of
// the CloudEvent refer to the event's creation instead.
func Trace(e *transitions.Logged) iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		hop := e.Hop()
		if hop == "" || !yield("traceparent", hop.Traceparent()) || hop.Tracestate() == "" {
			return
		}
		yield("tracestate", hop.Tracestate())
	}
}

// Attributes returns the context attributes of an event's CloudEvent, by name, for protocols that
// show them outside the body. Values are valid in headers: visible ASCII, percent-encoded as for
// HTTP.
func Attributes(e *transitions.Event) iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		if !(yield("specversion", "1.0") &&
			yield("id", e.ID()) &&
			yield("source", e.CloudSource()) &&
			yield("type", headerValue(e.Type)) &&
			yield("subject", headerValue(e.Subject())) &&
			yield("time", e.At.UTC().Format(time.RFC3339Nano)) &&
			yield("position", strconv.FormatInt(e.Position, 10)) &&
			yield("instance", e.Instance.String()) &&
			yield("version", strconv.FormatInt(e.Version, 10)) &&
			yield("workflow", headerValue(e.Workflow)) &&
			yield("transition", headerValue(e.Transition)) &&
			yield("state", headerValue(string(e.State)))) {
			return
		}
		for name, text := range e.Told() {
			if !yield(name, headerValue(text)) {
				return
			}
		}
		if e.Payload == nil {
			yield("redacted", "true")
		}
	}
}
