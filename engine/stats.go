package engine

import (
	"github.com/pawlhq/pawl/engine/internal/commit"
	"github.com/pawlhq/pawl/engine/internal/inflight"
	"github.com/pawlhq/pawl/engine/internal/migrate"
	"github.com/pawlhq/pawl/engine/internal/retention"
)

// What a node counts, each since its start.
type (
	// PipelineStats are the counters of the commit pipeline.
	PipelineStats = commit.Stats
	// InFlightStats are those of the work on commands in flight.
	InFlightStats = inflight.Stats
	// ActivityDurations counts the attempts of an activity that had the same outcome, by how long they took.
	ActivityDurations = inflight.Durations
	// RetentionStats are those of what this node removed.
	RetentionStats = retention.Stats
	// MigrationStats are those of the instances that this node took to another version.
	MigrationStats = migrate.Stats
)

// DurationBounds are the upper bounds of the buckets of ActivityDurations.Within, in seconds.
var DurationBounds = inflight.DurationBounds
