package sinktest

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/transitions"
)

var begin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// tenantLog creates the events of a tenant, with names that need escaping.
type tenantLog struct {
	tenant   string
	position int64
	version  map[uuid.UUID]int64
}

func newLog(tenant string) *tenantLog {
	return &tenantLog{tenant: tenant, version: make(map[uuid.UUID]int64)}
}

// transition appends a transition with its events. The first event has a payload of size bytes.
func (l *tenantLog) transition(events []transitions.Logged, instance uuid.UUID, size int) []transitions.Logged {
	l.position++
	l.version[instance]++
	version := l.version[instance]
	e := transitions.Event{
		Tenant: l.tenant, Position: l.position, Type: "Bestellung/süd.pay \"now\"", Workflow: "Bestellung/süd", Instance: instance,
		Version: version, Transition: "pay \"now\"", State: "Paid\tin full", At: begin.Add(time.Duration(l.position) * time.Microsecond),
		Payload: []byte(`{"note":"` + strings.Repeat("x", size) + `"}`),
	}
	events = append(events, logged(e))
	if version%2 == 0 { // emitted by an action
		e.Ordinal, e.Type, e.Payload = 1, "invoice.sent", fmt.Appendf(nil, `{"no":"%d"}`, l.position)
		events = append(events, logged(e))
	}
	return events
}

// events creates the events of several instances, interleaved.
func (l *tenantLog) events(instances, transitionsEach int) []transitions.Logged {
	ids := make([]uuid.UUID, instances)
	for i := range ids {
		ids[i] = uuid.New()
	}
	var events []transitions.Logged
	for range transitionsEach {
		for _, id := range ids {
			events = l.transition(events, id, 100)
		}
	}
	return events
}

func logged(e transitions.Event) transitions.Logged {
	return transitions.Logged{Event: e, CloudEvent: e.AppendCloudEvent(nil)}
}
