package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/workflow"
)

// An engine runs retention and reports its progress.
func TestAnEngineDoesRetention(t *testing.T) {
	t.Parallel()
	pool, off := started(t, func(c *engine.Config) { c.Retention.Off = true })
	if s, err := off.Admin().Retention(t.Context()); err != nil || s.Node != "" {
		t.Errorf("%+v, %v", s, err)
	}
	e := newEngine(t, pool)
	eventually(t, "it works", func() bool { return e.Admin().RetentionStats().Batches > 0 })
	s, err := off.Admin().Retention(t.Context())
	assert.Truef(t, err == nil && s.Node != "" && s.Since != nil && s.Until != nil && len(s.Partitions) >= 5 &&
		strings.HasPrefix(s.Partitions[0].Name, "command_history_"), "%+v, %v", s, err)
	assert.Equal(t, int64(0), off.Admin().RetentionStats().Batches, "the other one, too")
}

func TestEventsAreKeptForADayAtLeast(t *testing.T) {
	t.Parallel()
	pool := database(t)
	for kept, ok := range map[time.Duration]bool{-time.Hour: false, time.Nanosecond: false, 24*time.Hour - 1: false, 24 * time.Hour: true,
		0: true} {
		_, err := engine.New(engine.Config{Pool: pool, Workflows: []workflow.Source{loans(1)}, Retention: engine.RetentionConfig{Outbox: kept}})
		assert.Truef(t, ok == (err == nil) && (err == nil || strings.Contains(err.Error(), "Config.Retention.Outbox is less than 24h0m0s")),
			"%s: %v", kept, err)
	}
}
