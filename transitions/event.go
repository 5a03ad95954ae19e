package transitions

import (
	"cmp"
	"fmt"
	"iter"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/pawlhq/pawl/tracing"
	"github.com/pawlhq/pawl/workflow"
)

// Event is one event of the log. Every transition has one of type
// "workflow.transition" with the data after it; an action may add others.
type Event struct {
	Source      string // of all events of its installation; "" is DefaultSource
	Tenant      string
	Position    int64 // of its transition; given by the database
	Ordinal     int   // counts the events of one transition from 0
	Type        string
	Workflow    string
	Instance    uuid.UUID
	BusinessKey string            // of the instance; may be empty
	Attributes  map[string]string // the declared ones, after the transition; for filters, and no part of the CloudEvent
	Version     int64
	Transition  string
	From        workflow.State // the state before the transition; "" of a creation
	State       workflow.State // the state after it
	Actor       string         // who did it
	Reason      string         // why, where somebody said so
	Scope, Key  string         // of the command that did it
	Cause       Cause          // what the command came from
	CausedBy    string         // which one of these it was, where it has a name; see [Cause]
	At          time.Time
	Payload     []byte          // JSON; nil: it was erased
	Trace       tracing.Context // where in a trace its transition was decided; nowhere where that is not sampled
}

// ID is the event's stable id, unique within its source.
func (e *Event) ID() string {
	return strconv.FormatInt(e.Position, 10) + "-" + strconv.Itoa(e.Ordinal)
}

// DefaultSource is what the sources of events begin with where nobody says it.
const DefaultSource = "/pawl"

// CheckSource refuses what sources cannot begin with: a URI reference of 1 to 64
// visible ASCII characters, without query, fragment and percent signs, that does not
// end with a slash.
func CheckSource(source string) error {
	_, err := url.Parse(source)
	if err != nil || source == "" || len(source) > 64 || strings.HasSuffix(source, "/") ||
		strings.ContainsFunc(source, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`"%?#\<>`, r) }) {
		return fmt.Errorf("the source %q is not a URI reference of 1 to 64 visible ASCII characters,"+
			" without \", %%, ?, # and a slash at its end", source)
	}
	return nil
}

// CloudSource is the event's source: "/pawl/{tenant}", or what its installation has
// in place of "/pawl".
func (e *Event) CloudSource() string {
	return cmp.Or(e.Source, DefaultSource) + "/" + url.PathEscape(e.Tenant)
}

// Subject is what the event is about: the business key of its instance, or the
// instance's id where it has none. Its text is fit for an attribute.
func (e *Event) Subject() string {
	if e.BusinessKey != "" {
		return attributeText(e.BusinessKey)
	}
	return e.Instance.String()
}

// Told are the optional attributes of the CloudEvent that this event has, by name.
// Their text is fit for an attribute.
func (e *Event) Told() iter.Seq2[string, string] {
	return func(yield func(name, text string) bool) {
		for _, a := range [...]struct{ name, text string }{
			{"businesskey", e.BusinessKey}, {"from", string(e.From)}, {"actor", e.Actor}, {"reason", e.Reason},
			{"scope", e.Scope}, {"key", e.Key}, {"cause", string(e.Cause)}, {"causedby", e.CausedBy},
			{"traceparent", e.Trace.Traceparent()}, {"tracestate", e.Trace.Tracestate()},
		} {
			if a.text != "" && !yield(a.name, attributeText(a.text)) {
				return
			}
		}
	}
}

// attributeText is a text as an attribute may have it (CloudEvents 1.0, Type
// System): a space in place of a line break or a tab, U+FFFD in place of another
// control character or a noncharacter.
func attributeText(s string) string {
	if strings.IndexFunc(s, unfit) < 0 {
		return s
	}
	return strings.Map(func(r rune) rune {
		switch {
		case !unfit(r):
			return r
		case r == '\n' || r == '\r' || r == '\t':
			return ' '
		}
		return utf8.RuneError
	}, s)
}

func unfit(r rune) bool {
	return r < ' ' || r >= 0x7f && r <= 0x9f || r >= 0xfdd0 && r <= 0xfdef || r&0xfffe == 0xfffe
}

// AppendCloudEvent appends the event as CloudEvents 1.0 JSON. The source is
// CloudSource, the subject Subject; position, instance, version, workflow,
// transition, state and what Told says are extension attributes. The position is
// text, because an integer of CloudEvents has 32 bits. Where the payload was erased
// there is no data, and the attribute "redacted" is true.
func (e *Event) AppendCloudEvent(b []byte) []byte {
	b = append(b, `{"specversion":"1.0","id":"`...)
	b = strconv.AppendInt(b, e.Position, 10)
	b = append(b, '-')
	b = strconv.AppendInt(b, int64(e.Ordinal), 10)
	b = append(b, `","source":`...)
	b, _ = jsontext.AppendQuote(b, e.CloudSource())
	b = append(b, `,"type":`...)
	b, _ = jsontext.AppendQuote(b, e.Type)
	b = append(b, `,"subject":`...)
	b, _ = jsontext.AppendQuote(b, e.Subject())
	b = append(b, `,"time":"`...)
	b = e.At.UTC().AppendFormat(b, time.RFC3339Nano)
	b = append(b, `","position":"`...)
	b = strconv.AppendInt(b, e.Position, 10)
	b = append(b, `","instance":"`...)
	b = append(b, e.Instance.String()...)
	b = append(b, `","version":`...)
	b = strconv.AppendInt(b, e.Version, 10)
	b = append(b, `,"workflow":`...)
	b, _ = jsontext.AppendQuote(b, e.Workflow)
	b = append(b, `,"transition":`...)
	b, _ = jsontext.AppendQuote(b, e.Transition)
	b = append(b, `,"state":`...)
	b, _ = jsontext.AppendQuote(b, string(e.State))
	for name, text := range e.Told() {
		b = append(append(append(b, `,"`...), name...), `":`...)
		b, _ = jsontext.AppendQuote(b, text)
	}
	if e.Payload == nil {
		return append(b, `,"redacted":true}`...)
	}
	b = append(b, `,"datacontenttype":"application/json","data":`...)
	b = append(b, e.Payload...)
	return append(b, '}')
}
