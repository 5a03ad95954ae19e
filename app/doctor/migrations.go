package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/pawlhq/pawl/inspect"
)

func lookAtMigrations(ctx context.Context, x *exam) (string, []Finding, error) {
	k, err := x.standing(ctx)
	if err != nil {
		return "", nil, err
	}
	list, err := x.engine.Admin().Migrations(ctx)
	if err != nil {
		return "", nil, err
	}
	var found []Finding
	open := 0
	judged := map[string]bool{} // workflows, with the version that instances left: the newest migration tells
	for i := range list {
		m := &list[i]
		of := fmt.Sprintf("%s %d", m.Workflow, m.From)
		if m.EndedAt.IsZero() {
			open++
			found = append(found, x.judgeMigration(m, k.At)...)
		}
		if m.Rejected > 0 && !judged[of] {
			left, err := x.openOf(ctx, m.Workflow, m.From)
			if err != nil {
				return "", found, err
			}
			if left > 0 {
				found = append(found, warning(aboutMigration(m),
					`see the reasons in "ops migrations -o json"; change the plan and migrate again, or see to each`,
					"not taken from version %d of workflow %s to %d: %s; about %s of version %d", m.From, m.Workflow, m.To,
					several(m.Rejected, "instance"), several(left, "open instance"), m.From))
			}
		}
		judged[of] = true
	}
	return fmt.Sprintf("%s under way, none is held up", several(open, "migration")), found, nil
}

// aboutMigration names a migration, as operators do.
func aboutMigration(m *inspect.Migration) string { return fmt.Sprint(m.ID) }

// judgeMigration says what is wrong with a migration that has not ended: of what holds it up, the first.
func (x *exam) judgeMigration(m *inspect.Migration, now time.Time) []Finding {
	what := fmt.Sprintf("the migration of workflow %s from version %d to %d, with about %s left,",
		m.Workflow, m.From, m.To, several(m.Left(), "instance"))
	switch late, age := now.Sub(m.Next), now.Sub(m.CreatedAt); {
	case late >= x.limits.stale:
		return []Finding{problem(aboutMigration(m),
			dof("run a node that has both versions and the plan, or end it with \"ops stop-migration %d\"", m.ID),
			"%s is done by no node since %s", what, span(late))}
	case m.Held != "":
		return []Finding{warning(aboutMigration(m), "docs/operations.md, Migration held up", "%s waits: %s", what, m.Held)}
	case age >= x.limits.migration:
		return []Finding{warning(aboutMigration(m), "docs/operations.md, Migration held up", "%s was asked for %s ago", what, span(age))}
	}
	return nil
}

// openOf is how many instances of a version are under way, about.
func (x *exam) openOf(ctx context.Context, workflow string, version int) (int64, error) {
	open := true
	c, err := x.engine.Read().Counts(ctx, inspect.CountFilter{Workflow: workflow, Definition: version, Open: &open})
	return c.Total, err
}
