package api_test

import (
	"slices"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api/wire"
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

func TestTheLogIsReadPageByPage(t *testing.T) {
	s := newServer(t)
	s.someEvents()
	for _, c := range []struct {
		query string
		ids   []string
		next  int64
	}{
		{"", []string{"1-0", "2-0", "3-0", "3-1", "3-2", "4-0", "4-1", "4-2"}, 4},
		{"?after=start", []string{"1-0", "2-0", "3-0", "3-1", "3-2", "4-0", "4-1", "4-2"}, 4},
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

func TestTheLogIsFiltered(t *testing.T) {
	s := newServer(t)
	first, second := s.someEvents()
	s.post("/v1/instances/"+second.String()+"/send", "k", `{}`).want(t, 200)
	for query, want := range map[string][]string{
		"?workflow=parcel&limit=2":                              {"1-0", "2-0"},
		"?type=other.pack":                                      {},
		"?instance=" + second.String():                          {"2-0", "5-0"},
		"?type=parcel.priced":                                   {"3-2", "4-2"},
		"?state=sent":                                           {"5-0"},
		"?state=packed&type=parcel.pack":                        {"1-0", "2-0"},
		"?type=parcel.stamp&after=3&instance=" + first.String(): {"4-0"},
	} {
		a := s.get("/v1/events" + query)
		a.want(t, 200)
		p := read[wire.Events](t, a)
		if got := idsOf(t, p); !slices.Equal(got, want) || p.Head != 5 || len(got) < 2 && p.NextAfter != 5 {
			t.Errorf("%s: %q, next %d, head %d; want %q", query, got, p.NextAfter, p.Head, want)
		}
	}
}

func TestALongPollEndsWithTheFirstEvent(t *testing.T) {
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

func TestALongPollEndsWhenTheNodeStops(t *testing.T) {
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
