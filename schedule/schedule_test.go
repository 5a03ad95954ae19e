package schedule_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/schedule"
)

func TestBuild(t *testing.T) {
	_, err := schedule.New(nil).Build()
	require.NoError(t, err)
}

func TestRun_Placeholders(t *testing.T) {
	r := schedule.Run{BusinessKey: "day-{date}", Payload: []byte(`{"at":"{nominal}","n":1}`)}
	got := r.At(time.Date(2026, 3, 1, 23, 30, 0, 0, time.UTC), "Europe/Berlin")
	assert.Equal(t, "day-2026-03-02", got.BusinessKey)
	assert.JSONEq(t, `{"at":"2026-03-01T23:30:00Z","n":1}`, string(got.Payload))
}

func TestBetween_UsesTheSpecOfTheTime(t *testing.T) {
	day := func(d, h int) time.Time { return time.Date(2026, 1, d, h, 0, 0, 0, time.UTC) }
	s := schedule.Schedule{Plan: schedule.Plan{Spec: schedule.Spec{Cron: "0 9 * * *"}}, Since: day(3, 12),
		Earlier: []schedule.Era{{Spec: schedule.Spec{Cron: "0 */12 * * *"}, Until: day(3, 12)}}}
	got, err := s.Between(nil, schedule.Span{From: day(2, 12), Until: day(5, 9)})
	require.NoError(t, err)
	assert.Equal(t, []time.Time{day(2, 12), day(3, 0), day(4, 9)}, got)
}
