package relay_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/kernel/outbox"
	"github.com/pawlhq/pawl/outbox/feed"
	"github.com/pawlhq/pawl/outbox/relay"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func TestConfigReportsAllErrors(t *testing.T) {
	_, err := relay.New(relay.Config{Lease: time.Second, Sinks: []relay.Sink{
		{Name: "Main", To: &receiver{}}, {Name: "a"}, {Name: "a", To: &receiver{}},
		{Name: "b", To: &receiver{}, Batch: -1}, {Name: "c", To: &receiver{}, Retry: workflow.Retry{First: time.Minute, Max: time.Second}},
		{Name: "d", To: &receiver{}, Tenants: []string{""}}, {Name: "e", To: &receiver{}, Exhausted: 7},
		{Name: "f", To: &receiver{}, Filter: transitions.EventFilter{BusinessKey: "1"}},
		{Name: "g", To: &receiver{}, Filter: transitions.EventFilter{Types: []string{""}}},
	}})
	require.Error(t, err, "it is accepted")
	for _, want := range []string{"are required", "Lease", `"Main"`, `sink "a" has no To`, `duplicate sink "a"`, `"b" has a negative`,
		`"c" has a negative`,
		`sink "d" has an invalid tenant ""`, `"e" has an unknown`,
		`filter of sink "f": invalid_request: a filter by business key needs the workflow`, `filter of sink "g": a type or a state`} {
		assert.Containsf(t, err.Error(), want, "it does not say: %v", err)
	}
	good := relay.Config{Pool: &pgxpool.Pool{}, Events: outbox.New(nil, same, ""), Node: "n", Log: slog.New(slog.DiscardHandler),
		Feed: &feed.Feed{}, Sinks: []relay.Sink{{Name: "a.b-c_1", To: &receiver{}}}}
	_, err = relay.New(good)
	assert.NoError(t, err)
}
