package api_test

import (
	"bufio"
	"cmp"
	"context"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/api/internal/streamtest"
	"github.com/pawlhq/pawl/api/wire"
)

// eventSource reads an event stream as a browser would.
type eventSource struct {
	t        testing.TB
	in       *bufio.Reader
	lastID   string
	seen     []string // ids of CloudEvents
	raw      []string // and their text
	statuses []wire.CommandStatus
	ended    bool
	kind     string   // of the last event
	texts    []string // comments
}

// smallClient opens a connection for each stream.
var smallClient = &http.Client{Transport: &http.Transport{DialContext: streamtest.Dial, DisableKeepAlives: true}}

// source opens an event stream, which ends with the returned function.
func (s *server) source(path string, headers ...string) (*eventSource, func()) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	response, err := smallClient.Do(s.request(ctx, http.MethodGet, path, nil, append(headers, "Accept", "text/event-stream")...))
	require.NoError(s.t, err)
	if got := response.Header.Get("Content-Type"); got != "text/event-stream" || response.StatusCode != 200 {
		body, _ := io.ReadAll(response.Body)
		s.t.Fatalf("status %d, Content-Type %q: %s", response.StatusCode, got, body)
	}
	return &eventSource{t: s.t, in: bufio.NewReader(response.Body)}, func() {
		cancel()
		_ = response.Body.Close()
	}
}

// until reads until the condition holds after a block, or the stream ends.
func (e *eventSource) until(condition func() bool) {
	e.t.Helper()
	id, kind, data := "", "", []string(nil)
	for !condition() {
		line, err := e.in.ReadString('\n')
		if err != nil {
			e.ended = true
			return
		}
		line = strings.TrimSuffix(line, "\n")
		field, value, _ := strings.Cut(line, ":")
		switch value = strings.TrimPrefix(value, " "); {
		case line == "":
			if id != "" {
				e.lastID = id
			}
			if data != nil {
				e.kind = kind
			}
			switch text := []byte(strings.Join(data, "\n")); {
			case kind == "unauthorized":
			case kind == "status":
				e.statuses = append(e.statuses, read[wire.CommandStatus](e.t, answer{body: text}))
			case data != nil:
				e.seen, e.raw = append(e.seen, parseEvent(e.t, text).ID), append(e.raw, string(text))
			}
			id, kind, data = "", "", nil
		case field == "":
			e.texts = append(e.texts, value)
		case field == "id":
			id = value
		case field == "event":
			kind = value
		case field == "data":
			data = append(data, value)
		}
	}
}

func TestEventStream_Resumes(t *testing.T) {
	s := newServer(t)
	first, _ := s.someEvents()
	stream, cut := s.source("/v1/events?after=1")
	// Cut it between the events of position 3.
	stream.until(func() bool { return len(stream.seen) == 2 })
	cut()
	require.Truef(t, stream.lastID == "2" && slices.Equal(stream.seen, []string{"2-0", "3-0"}),
		"read %q up to id %s", stream.seen, stream.lastID)
	s.stamp(first, 1)
	again, cut := s.source("/v1/events?after=1", "Last-Event-ID", stream.lastID)
	defer cut()
	again.until(func() bool { return again.lastID == "5" })
	want := []string{"3-0", "3-1", "3-2", "4-0", "4-1", "4-2", "5-0", "5-1", "5-2"}
	assert.Truef(t, slices.Equal(again.seen, want), "resumed with %q, want %q", again.seen, want)
	s.stamp(first, 1)
	again.until(func() bool { return again.lastID == "6" })
	assert.Len(t, again.seen, 12, "then came")
}

func TestEventStream_FromNow(t *testing.T) {
	s := newServer(t)
	first, second := s.someEvents()
	stream, cut := s.source("/v1/events?after=now&instance=" + first.String() + "&type=parcel.weighed")
	defer cut()
	s.waitForStreams(1)
	s.stamp(second, 1)
	s.stamp(first, 1)
	stream.until(func() bool { return len(stream.seen) == 1 })
	assert.Truef(t, stream.seen[0] == "6-1" && stream.lastID == "6", "%q, id %s", stream.seen, stream.lastID)
}

func TestEventStream_Heartbeat(t *testing.T) {
	s := newServer(t, func(c *api.Config) { c.Stream.CommentEvery = 20 * time.Millisecond })
	s.someEvents()
	stream, cut := s.source("/v1/events?type=nothing")
	defer cut()
	stream.until(func() bool { return len(stream.texts) >= 2 && stream.lastID == "4" })
	assert.Truef(t, !stream.ended && len(stream.seen) == 0, "ended %t, %q", stream.ended, stream.seen)
}

func TestEventStream_SlowReader(t *testing.T) {
	s := newServer(t, func(c *api.Config) { c.Stream.MaxLag, c.Stream.WriteTimeout = 5, 2*time.Second })
	stream, cut := s.source("/v1/events")
	defer cut()
	s.packed("1")
	stream.until(func() bool { return stream.lastID == "1" })
	s.flood(60, 80_000) // and it reads nothing
	s.waitForStreams(0)
	stream.until(func() bool { return false })
	last, err := strconv.Atoi(stream.lastID)
	require.Truef(t, err == nil && last < 61, "the reader got everything, up to %s", stream.lastID)
	var seen []string
	for after := stream.lastID; after != "61"; { // who reads on is cut as well, when the machine stands still
		again, cut := s.source("/v1/events", "Last-Event-ID", after)
		again.until(func() bool { return again.lastID == "61" })
		cut()
		seen, after = append(seen, again.seen...), cmp.Or(again.lastID, after)
	}
	assert.Lenf(t, seen, 61-last, "resumed after %d with events", last)
}

// flood makes n parcels with labels, in one bulk request of items of about size
// bytes, so that much is in the log at once.
func (s *server) flood(n, size int) {
	s.t.Helper()
	var items []string
	for range n {
		items = append(
			items,
			`{"workflow":"parcel","transition":"bulky","key":"`+uuid.NewString()+`","payload":{"text":"`+strings.Repeat("x", size)+`"}}`,
		)
	}
	s.bulk("application/x-ndjson", strings.Join(items, "\n"), "").want(s.t, 200)
}
