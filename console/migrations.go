package console

import (
	"net/http"
	"strconv"

	"github.com/pawlhq/pawl/api"
)

// migrationList is the newest migrations of all instances of a version to another one.
type migrationList struct {
	lookedAt
	api.MigrationList
}

func (v *visit) migrations() error {
	list, err := get[api.MigrationList](v, "/v1/ops/migrations", nil)
	if err != nil {
		return err
	}
	return v.show("migrations", "Migrations", migrationList{MigrationList: list})
}

func (v *visit) stopMigrationForm() error {
	m, err := get[api.Migration](v, "/v1/ops"+segments("migrations", v.r.PathValue("migration")), nil)
	if err == nil {
		err = needs("operate:all", v.Has("operate:all"))
	}
	if err != nil {
		return err
	}
	return v.confirmation(confirm{Heading: "Stop the migration", Button: "Stop it", Bad: true, Runbook: runbook("migration-held-up"),
		Says: "No more instances are taken to the new version. Those that are there stay there; the others can be migrated later, by another " +
			"migration.",
		Facts: []attribute{{"Workflow", m.Workflow}, {"From version", strconv.Itoa(m.From)}, {"To version", strconv.Itoa(m.To)},
			{"Migrated", number(m.Migrated) + " of about " + number(m.Expected)}},
		Back: v.at("migrations")})
}

func (v *visit) stopMigration() error {
	return v.send(http.MethodPost, "/v1/ops"+segments("migrations", v.r.PathValue("migration"), "stop"), reasoned{}, v.at("migrations"))
}
