package api_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// cloudEvent is an event as a reader of the log sees it.
type cloudEvent struct {
	ID       string         `json:"id"`
	Type     string         `json:"type"`
	Source   string         `json:"source"`
	Instance uuid.UUID      `json:"instance"`
	Position int64          `json:"position,string"`
	State    workflow.State `json:"state"`
	Version  int64          `json:"version"`
}

func parseEvent(t testing.TB, text []byte) cloudEvent {
	t.Helper()
	var e cloudEvent
	require.NoError(t, json.Unmarshal(text, &e), text)
	return e
}

func idsOf(t testing.TB, p wire.Events) []string {
	t.Helper()
	ids := []string{}
	for _, text := range p.Events {
		ids = append(ids, parseEvent(t, text).ID)
	}
	return ids
}

// someEvents makes two parcels; the first is stamped twice, which has three
// events each time. Positions: 1 first, 2 second, 3 and 4 stamps.
func (s *server) someEvents() (first, second uuid.UUID) {
	s.t.Helper()
	first, second = s.packed("1"), s.packed("2")
	s.stamp(first, 2)
	return first, second
}

func TestEvents_Pages(t *testing.T) {
	s := newServer(t)
	first, _ := s.someEvents()
	for _, c := range []struct {
		query string
		ids   []string
		next  int64
	}{
		{"", []string{"1-0", "2-0", "3-0", "3-1", "3-2", "4-0", "4-1", "4-2"}, 4},
		{"?state=packed&type=parcel.priced", []string{"3-2", "4-2"}, 4},
		{"?type=other.pack", []string{}, 4},
		{"?type=parcel.stamp&after=3&instance=" + first.String(), []string{"4-0"}, 4},
		{"?after=2&limit=1", []string{"3-0", "3-1", "3-2"}, 3}, // never half a transition
		{"?after=0&limit=1", []string{"1-0"}, 1},
		{"?after=1&limit=2", []string{"2-0", "3-0", "3-1", "3-2"}, 3},
		{"?after=3", []string{"4-0", "4-1", "4-2"}, 4},
		{"?after=4", []string{}, 4},
		{"?after=now", []string{}, 4},
	} {
		a := s.get("/v1/events" + c.query)
		a.want(t, 200)
		p := read[wire.Events](t, a)
		if got := idsOf(t, p); !slices.Equal(got, c.ids) || p.NextAfter != c.next || p.Head != 4 {
			t.Errorf("%s: %q, next %d, head %d; want %q, next %d", c.query, got, p.NextAfter, p.Head, c.ids, c.next)
		}
	}
	p := read[wire.Events](t, s.get("/v1/events", "Pawl-Tenant", "other"))
	assert.Truef(t, len(p.Events) == 0 && p.Head == 0, "another tenant sees %+v", p)
}

func TestEvents_LongPoll(t *testing.T) {
	s := newServer(t)
	first, _ := s.someEvents()
	answers := later(func() answer { return s.get("/v1/events?after=4&type=parcel.priced", "Prefer", "wait=60") })
	s.waitForStreams(1)
	s.packed("1") // not what it waits for
	select {
	case a := <-answers:
		t.Fatalf("it did not wait: %s", a.body)
	default:
	}
	s.stamp(first, 1)
	a := <-answers
	p := read[wire.Events](t, a)
	if got := idsOf(t, p); !slices.Equal(got, []string{"6-2"}) || p.NextAfter != 6 || a.header.Get("Preference-Applied") != "wait" {
		t.Errorf("%q, next %d, %v", got, p.NextAfter, a.header)
	}
	// What is there already is answered at once.
	p = read[wire.Events](t, s.get("/v1/events?after=5", "Prefer", "wait=60"))
	assert.Equalf(t, int64(6), p.NextAfter, "%+v", p)
}

func TestEvents_LongPollEndsWithNode(t *testing.T) {
	s := newServer(t)
	s.someEvents()
	answers := later(func() answer { return s.get("/v1/events?after=4", "Prefer", "wait=60") })
	s.waitForStreams(1)
	require.NoError(t, s.api.Stop(t.Context()))
	if a := <-answers; a.status != 200 {
		t.Errorf("%d %s", a.status, a.body)
	}
	a := s.get("/v1/events?after=4", "Prefer", "wait=60")
	a.wantProblem(t, 503, workflow.ShuttingDown)
	assert.NotEqual(t, "", a.header.Get("Retry-After"), "503 without Retry-After")
	s.get("/v1/events?after=3").want(t, 200)
}

// A reader that is too late gets the oldest position, before any stream starts.
func TestEvents_Gone(t *testing.T) {
	s := newServer(t)
	s.someEvents()
	_, err := s.pool.Exec(t.Context(), "DELETE FROM pawl.outbox WHERE position <= 2")
	require.NoError(t, err)
	for _, headers := range [][]string{nil, {"Accept", "text/event-stream"}} {
		for _, after := range []string{"0", "1"} {
			a := s.get("/v1/events?after="+after, headers...)
			a.wantProblem(t, 410, workflow.EventsGone)
			p := read[transitions.Problem](t, a)
			assert.Equalf(t, int64(3), p.Position, "after %s: %+v", after, p)
		}
	}
	s.get("/v1/events?after=2").want(t, 200)
}

// The start is the oldest retained event, or the next one if there is none, so a new reader misses nothing that was removed. A reader that
// names a position is told if events after it are gone.
func TestEvents_StartIsOldest(t *testing.T) {
	s := newServer(t)
	s.someEvents()
	c := s.dial()
	for _, tt := range []struct {
		removed, after int64
		ids            []string
	}{{2, 2, []string{"3-0", "3-1", "3-2", "4-0", "4-1", "4-2"}}, {4, 4, nil}} {
		_, err := s.pool.Exec(t.Context(), "DELETE FROM pawl.outbox WHERE position <= $1", tt.removed)
		require.NoError(t, err)
		for _, query := range []string{"", "?after=start"} {
			a := s.get("/v1/events" + query)
			a.want(t, 200)
			page := read[wire.Events](t, a)
			ids := idsOf(t, page)
			assert.Truef(t, slices.Equal(ids, tt.ids) && page.NextAfter == 4 && page.Head == 4, "%q: %q, %+v", query, ids, page)
		}
		if len(tt.ids) > 0 {
			e, end := s.source("/v1/events")
			e.until(func() bool { return len(e.seen) == len(tt.ids) })
			end()
			assert.Truef(t, slices.Equal(e.seen, tt.ids), "as a stream: %q", e.seen)
		}
		id := fmt.Sprint("s", tt.after)
		m := c.subscribe(id, `"start"`, `{}`)
		assert.Equal(t, tt.after, m.After, "subscribed after")
		ids, caughtUp := c.events("caught_up")
		assert.Truef(t, slices.Equal(ids, tt.ids) && caughtUp.Position == 4, "%q, then %+v", ids, caughtUp)
	}
}
