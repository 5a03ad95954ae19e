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
	// RetentionStats are those of what this node removed.
	RetentionStats = retention.Stats
	// MigrationStats are those of the instances that this node took to another version.
	MigrationStats = migrate.Stats
)
