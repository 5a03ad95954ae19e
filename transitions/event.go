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

// Event is an event of the log. Every transition has one of type "workflow.transition" with the resulting data; actions can add others.
type Event struct {
	Source      string // prefix of the sources of an installation; defaults to DefaultSource
	Tenant      string
	Position    int64 // of its transition; assigned by the database
	Ordinal     int   // number within the transition, from 0
	Type        string
	Workflow    string
	Instance    uuid.UUID
	BusinessKey string            // of the instance; optional
	Attributes  map[string]string // declared attributes after the transition; for filters, not in the CloudEvent
	Version     int64
	Transition  string
	From        workflow.State // state before the transition; "" for a creation
	State       workflow.State // state after it
	Actor       string
	Reason      string // optional
	Scope, Key  string // of the command
	Cause       Cause  // cause of the command
	CausedBy    string // name of the cause; see [Cause]
	At          time.Time
	Payload     []byte          // JSON; nil: erased
	Trace       tracing.Context // trace context of the transition, if sampled
}

// ID returns the event's stable id, unique within its source.
func (e *Event) ID() string {
	return strconv.FormatInt(e.Position, 10) + "-" + strconv.Itoa(e.Ordinal)
}

// DefaultSource is the default prefix of event sources.
const DefaultSource = "/pawl"

// CheckSource validates a prefix of event sources: a URI reference of 1 to 64 visible ASCII
// characters without query, fragment, percent signs and trailing slash.
func CheckSource(source string) error {
	_, err := url.Parse(source)
	if err != nil || source == "" || len(source) > 64 || strings.HasSuffix(source, "/") ||
		strings.ContainsFunc(source, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`"%?#\<>`, r) }) {
		return fmt.Errorf("the source %q is not a URI reference of 1 to 64 visible ASCII characters,"+
			" without \", %%, ?, # and a slash at its end", source)
	}
	return nil
}

// CloudSource returns the event's source: "/pawl/{tenant}", or with the prefix of its installation.
func (e *Event) CloudSource() string {
	return cmp.Or(e.Source, DefaultSource) + "/" + url.PathEscape(e.Tenant)
}

// Subject returns the business key of the instance, or its id without one, as an attribute.
func (e *Event) Subject() string {
	if e.BusinessKey != "" {
		return attributeText(e.BusinessKey)
	}
	return e.Instance.String()
}

// Told returns the optional attributes of the event's CloudEvent by name, in valid form.
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

// attributeText returns a text as a valid attribute (CloudEvents 1.0, Type System): line breaks and
// tabs become spaces, other control characters and noncharacters U+FFFD.
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

// AppendCloudEvent appends the event as CloudEvents 1.0 JSON. Source and subject are CloudSource and Subject; position, instance,
// version, workflow, transition, state and the attributes of Told are extension attributes. The position is text, because integers in
// CloudEvents have 32 bits. If the payload was erased, data is absent and the attribute "redacted" is true.
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
