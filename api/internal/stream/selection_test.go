package stream

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

var oneInstance, otherInstance = uuid.New(), uuid.New()

// someLog is three transitions with one, three and one events.
func someLog() []transitions.Logged {
	event := func(position int64, ordinal int, kind string, id uuid.UUID, state workflow.State) transitions.Logged {
		name, _, _ := strings.Cut(kind, ".")
		return transitions.Logged{
			Event:      transitions.Event{Position: position, Ordinal: ordinal, Type: kind, Workflow: name, Instance: id, State: state},
			CloudEvent: []byte(`{"id":"` + strconv.FormatInt(position, 10) + "-" + strconv.Itoa(ordinal) + `"}`),
		}
	}
	return []transitions.Logged{
		event(1, 0, "order.place", oneInstance, "placed"),
		event(2, 0, "order.pay", oneInstance, "paid"),
		event(2, 1, "order.charged", oneInstance, "paid"),
		event(2, 2, "order.thanked", oneInstance, "paid"),
		event(3, 0, "fine.open", otherInstance, "open"),
	}
}

func TestSelection_MoreOfTransition(t *testing.T) {
	for name, c := range map[string]struct {
		selected selection
		want     []string // with + where more follows
	}{
		"everything":     {selection{}, []string{"1-0", "2-0+", "2-1+", "2-2", "3-0"}},
		"workflow":       {selection{transitions.EventFilter{Workflow: "order"}}, []string{"1-0", "2-0+", "2-1+", "2-2"}},
		"instance":       {selection{transitions.EventFilter{Instance: otherInstance}}, []string{"3-0"}},
		"types":          {selection{transitions.EventFilter{Types: []string{"order.pay", "order.thanked", "x"}}}, []string{"2-0+", "2-2"}},
		"one type":       {selection{transitions.EventFilter{Types: []string{"order.charged"}}}, []string{"2-1"}},
		"states":         {selection{transitions.EventFilter{States: []workflow.State{"open", "placed"}}}, []string{"1-0", "3-0"}},
		"all conditions": {selection{transitions.EventFilter{Workflow: "order", States: []workflow.State{"open"}}}, nil},
	} {
		var got []string
		for e, more := range c.selected.from(someLog()) {
			mark := e.ID()
			if more {
				mark += "+"
			}
			got = append(got, mark)
		}
		assert.Truef(t, slices.Equal(got, c.want), "%s: %q, want %q", name, got, c.want)
	}
	for range (&selection{}).from(someLog()) {
		break // must not go on
	}
}

func TestPagesHoldWholeTransitions(t *testing.T) {
	for limit, want := range map[int]struct {
		events int
		last   int64
	}{1: {1, 1}, 2: {4, 2}, 3: {4, 2}, 4: {4, 2}, 5: {5, 9}, 100: {5, 9}} {
		p := &Page{limit: limit}
		p.add(transitions.Batch{Events: someLog(), Last: 9, Head: 9})
		assert.Truef(t, len(p.Events) == want.events && p.Last == want.last,
			"limit %d: %d events up to %d, want %+v", limit, len(p.Events), p.Last, want)
		assert.Equalf(t, (p.Last < 9 || len(p.Events) >= limit), p.full(), "limit %d: full", limit)
	}
	p := &Page{limit: 1, selected: selection{transitions.EventFilter{Workflow: "none"}}}
	p.add(transitions.Batch{Events: someLog(), Last: 9, Head: 9})
	assert.Truef(t, len(p.Events) == 0 && p.Last == 9 && !p.full(), "a filter that selects nothing: %+v", p)
}
