package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
)

var (
	instancesMigrated = counter("pawl_migrated_instances_total",
		"Instances that this node migrated to another version, by outcome.", "outcome")
	migrationFailures = counter("pawl_migration_failures_total",
		"Failures of migrations on this node, that were tried again.")
	migrationsHeld = sharedGauge("pawl_migrations_held",
		"Migrations of instances that wait for a node or for activities.")
	migrationLeft = sharedGauge("pawl_migration_left_instances",
		"Instances left in running migrations, approximately.")
)

func sendMigrated(ch chan<- prometheus.Metric, s engine.MigrationStats) {
	send(ch, instancesMigrated, s.Migrated, "migrated")
	send(ch, instancesMigrated, s.Skipped, "skipped")
	send(ch, instancesMigrated, s.Rejected, "rejected")
	send(ch, migrationFailures, s.Failures)
}

func sendMigrations(ch chan<- prometheus.Metric, list *[]inspect.Migration, _ time.Time) {
	held, left := 0, int64(0)
	for i := range *list {
		m := &(*list)[i]
		if !m.EndedAt.IsZero() {
			continue
		}
		if m.Held != "" {
			held++
		}
		left += m.Left()
	}
	send(ch, migrationsHeld, held)
	send(ch, migrationLeft, left)
}
