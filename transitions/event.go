package transitions

import (
	"cmp"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/workflow"
)

// Event is one event of the log. Every transition has one of type
// "workflow.transition" with the data after it; an action may add others.
type Event struct {
	Source     string // of all events of its installation; "" is DefaultSource
	Tenant     string
	Position   int64 // of its transition; given by the database
	Ordinal    int   // counts the events of one transition from 0
	Type       string
	Workflow   string
	Instance   uuid.UUID
	Version    int64
	Transition string
	State      workflow.State // the state after the transition
	At         time.Time
	Payload    []byte // JSON
}

func eventsOf(e *Entry, emitted []workflow.Emitted) ([]Event, *workflow.Error) {
	event := Event{
		Tenant: e.Tenant, Type: e.Workflow + "." + e.Transition, Workflow: e.Workflow, Instance: e.Instance,
		Version: e.Version, Transition: e.Transition, State: e.To, At: e.At, Payload: e.Data,
	}
	if len(emitted) == 0 {
		return []Event{event}, nil
	}
	events := make([]Event, 1, 1+len(emitted))
	events[0] = event
	for i, x := range emitted {
		if x.Type == events[0].Type {
			return nil, defect("transition %q emits an event of type %q, which is that of every such transition", e.Transition, x.Type)
		}
		event.Ordinal, event.Type, event.Payload = i+1, x.Type, x.Payload
		events = append(events, event)
	}
	return events, nil
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
		return fmt.Errorf("the source %q is not a URI reference of 1 to 64 visible ASCII characters, without \", %%, ?, # and a slash at its end", source)
	}
	return nil
}

// CloudSource is the event's source: "/pawl/{tenant}", or what its installation has
// in place of "/pawl".
func (e *Event) CloudSource() string {
	return cmp.Or(e.Source, DefaultSource) + "/" + url.PathEscape(e.Tenant)
}

// AppendCloudEvent appends the event as CloudEvents 1.0 JSON. The source is
// CloudSource, the subject the instance; position, version, workflow,
// transition and state are extension attributes. The position is text, because
// an integer of CloudEvents has 32 bits.
func (e *Event) AppendCloudEvent(b []byte) []byte {
	b = append(b, `{"specversion":"1.0","id":"`...)
	b = strconv.AppendInt(b, e.Position, 10)
	b = append(b, '-')
	b = strconv.AppendInt(b, int64(e.Ordinal), 10)
	b = append(b, `","source":`...)
	b = appendQuoted(b, e.CloudSource())
	b = append(b, `,"type":`...)
	b = appendQuoted(b, e.Type)
	b = append(b, `,"subject":"`...)
	b = append(b, e.Instance.String()...)
	b = append(b, `","time":"`...)
	b = e.At.UTC().AppendFormat(b, time.RFC3339Nano)
	b = append(b, `","datacontenttype":"application/json","position":"`...)
	b = strconv.AppendInt(b, e.Position, 10)
	b = append(b, `","version":`...)
	b = strconv.AppendInt(b, e.Version, 10)
	b = append(b, `,"workflow":`...)
	b = appendQuoted(b, e.Workflow)
	b = append(b, `,"transition":`...)
	b = appendQuoted(b, e.Transition)
	b = append(b, `,"state":`...)
	b = appendQuoted(b, string(e.State))
	b = append(b, `,"data":`...)
	b = append(b, e.Payload...)
	return append(b, '}')
}
