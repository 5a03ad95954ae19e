package jetstream

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/outbox/sink"
	"github.com/pawlhq/pawl/transitions"
)

func TestSubjectsFollowThePattern(t *testing.T) {
	e := transitions.Event{Tenant: "north.süd *", Workflow: "order", Type: "order.pay",
		Instance: uuid.MustParse("01936b0e-0000-7000-8000-000000000001")}
	odd := transitions.Event{Workflow: ">", Type: ".a b..*"}
	tests := []struct {
		pattern, wildcard string
		event             *transitions.Event
		want              string
	}{
		{"pawl.{tenant}.{workflow}.{type}", "pawl.*.*.>", &e, "pawl.north%2Es%C3%BCd%20%2A.order.order.pay"},
		{"pawl.{tenant}.{workflow}.{type}", "pawl.*.*.>", &odd, "pawl.%.%3E.%.a%20b.%.%2A"},
		{"pawl.{tenant}.{type}", "pawl.*.>", &e, "pawl.north%2Es%C3%BCd%20%2A.order.pay"},
		{"cases.{workflow}.{instance}", "cases.*.*", &e, "cases.order.01936b0e-0000-7000-8000-000000000001"},
		{"a.b", "a.b", &e, "a.b"},
	}
	for _, tt := range tests {
		s, err := parseSubject(tt.pattern)
		if err != nil {
			t.Error(err)
			continue
		}
		assert.Truef(t, s.wildcard() == tt.wildcard && s.of(tt.event) == tt.want,
			"%s: %s and %s, want %s and %s", tt.pattern, s.wildcard(), s.of(tt.event), tt.wildcard, tt.want)
	}
	for _, pattern := range []string{"", "pawl.", ".pawl", "pawl..x", "{tenant}.x", "pawl.{type}.x", "pawl.*", "pawl.>", "pawl.{state}",
		"pa wl", "$JS.x", "pawl.x{type}"} {
		_, err := parseSubject(pattern)
		assert.Errorf(t, err, "%q is taken for a pattern", pattern)
	}
}

func FuzzSubjectMatchesWildcard(f *testing.F) {
	f.Add("acme", "order", "order.pay")
	f.Add("", ">", "..")
	s, err := parseSubject("pawl.{tenant}.{workflow}.{type}")
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, tenant, workflow, kind string) {
		got := s.of(&transitions.Event{Tenant: tenant, Workflow: workflow, Type: kind})
		tokens := strings.Split(got, ".")
		assert.Truef(t, len(tokens) == 4+strings.Count(kind, ".") && tokens[0] == "pawl" && !slices.Contains(tokens, "") &&
			!strings.ContainsAny(got, "*> \t\r\n"),
			"subject %q", got)
	})
}

func TestFailureKinds(t *testing.T) {
	api := func(status int, code jetstream.ErrorCode) error {
		return &jetstream.APIError{Code: status, ErrorCode: code}
	}
	tests := []struct {
		err  error
		want sink.Kind
	}{
		{nats.ErrMaxPayload, sink.Permanent},
		{jetstream.ErrStreamMessageExceedsMaximum.APIError(), sink.Permanent},
		{api(400, headersTooLarge), sink.Permanent},
		{fmt.Errorf("nats: %w", api(400, jetstream.JSErrCodeStreamMessageExceedsMaximum)), sink.Permanent},
		{jetstream.ErrNoStreamResponse, sink.Unavailable},
		{jetstream.ErrAsyncPublishTimeout, sink.Unavailable},
		{nats.ErrDisconnected, sink.Unavailable},
		{nats.ErrReconnectBufExceeded, sink.Unavailable},
		{nats.ErrConnectionClosed, sink.Unavailable},
		{api(400, wrongStream), sink.Unavailable},
		{api(429, 10167), sink.Unavailable},
		{api(500, 10047), sink.Unavailable},
		{api(503, 10077), sink.Unavailable},
		{api(409, 10158), sink.Temporary},
		{api(400, 10003), sink.Temporary},
		{errors.New("anything else"), sink.Unavailable},
	}
	for _, tt := range tests {
		got := failure(tt.err)
		assert.Truef(t, got.Kind == tt.want && errors.Is(got, tt.err), "%v means %v, want %q", tt.err, got, tt.want)
	}
}

func TestDifferencesAreDescribed(t *testing.T) {
	c := Config{MaxAge: time.Hour}
	s, err := c.check()
	require.NoError(t, err)
	want := c.stream(s)
	assert.Empty(t, differences(want, want), "a stream differs from itself")
	more := want
	more.Subjects = append([]string{"others"}, want.Subjects...)
	more.Description = "another"
	assert.Empty(t, differences(more, want), "a stream with more subjects differs")
	other := jetstream.StreamConfig{
		Subjects: []string{"others"}, Duplicates: time.Second, MaxAge: 0, Storage: jetstream.MemoryStorage, Replicas: 3,
		Retention: jetstream.WorkQueuePolicy, NoAck: true, Sealed: true,
	}
	got := strings.Join(differences(other, want), "; ")
	for _, part := range []string{`do not include "pawl.*.>"`, "1s, not 20m0s", "0s, not 1h0m0s", "Memory, not File", "replicas are 3, not 1",
		"WorkQueue, not Limits", "acknowledgements are disabled", "sealed"} {
		assert.Contains(t, got, part, "lacks")
	}
}

func TestConfigReportsAllErrors(t *testing.T) {
	_, err := New(Config{Stream: "a.b", Subject: "{type}", Timeout: -1, Duplicates: time.Hour, MaxAge: time.Minute})
	for _, want := range []string{"not a valid stream name", `invalid token "{type}"`, "must not be negative",
		"must not be longer than MaxAge"} {
		assert.ErrorContains(t, err, want, "lacks")
	}
}

// The duplicate window exceeds a takeover or a short outage, but not the retention period.
func TestDuplicateWindowDefault(t *testing.T) {
	for _, tt := range []struct{ duplicates, maxAge, want time.Duration }{
		{0, 0, 20 * time.Minute}, {0, time.Hour, 20 * time.Minute}, {0, time.Minute, time.Minute}, {2 * time.Minute, time.Hour, 2 * time.Minute},
	} {
		c := Config{Duplicates: tt.duplicates, MaxAge: tt.maxAge}
		s, err := c.check()
		assert.NoError(t, err)
		assert.Equalf(t, tt.want, c.stream(s).Duplicates, "Duplicates %v, MaxAge %v: it remembers for", tt.duplicates, tt.maxAge)
	}
}
