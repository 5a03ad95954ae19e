package console

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/workflow"
)

// migrationList is the newest migrations of all instances of a version to another one.
type migrationList struct {
	polled
	api.MigrationList
}

func (v *visit) migrations() error {
	list, err := get[api.MigrationList](v, "/v1/ops/migrations", nil)
	if err != nil {
		return err
	}
	return v.show("migrations", "Migrations", migrationList{MigrationList: list})
}

// newMigrationPage is a plan, what it would do, and the form that begins it.
type newMigrationPage struct {
	inspect.MigrationPlan
	Preview           *inspect.MigrationPreview // nil before it was tried
	Form              bool                      // it can be begun
	Key, Rate, Reason string
	Problem           string
}

// migrationForm shows what a migration would do, where the address asks for that: it reads every instance. Then it can be begun.
func (v *visit) migrationForm() error {
	if err := needs("operate:all", v.Has("operate:all")); err != nil {
		return err
	}
	page, err := planIn(v.r.URL.Query())
	if err != nil {
		return err
	}
	page.Key = uuid.NewString()
	if v.query("try") == "" {
		return v.showMigration(http.StatusOK, page)
	}
	if page.Preview, err = v.tried(page); err != nil {
		return v.migrationProblem(page, err)
	}
	page.Form = true
	return v.showMigration(http.StatusOK, page)
}

func (v *visit) tried(page *newMigrationPage) (*inspect.MigrationPreview, error) {
	a, err := v.ask(http.MethodPost, "/v1/ops/migrations", url.Values{"dry_run": {"true"}},
		api.NewMigration{Workflow: page.Workflow, From: page.From, To: page.To})
	if err != nil {
		return nil, err
	}
	preview := &inspect.MigrationPreview{}
	return preview, a.into(preview)
}

// beginMigration begins it; the form that is sent again begins no other one.
func (v *visit) beginMigration() error {
	page, err := planIn(v.r.PostForm)
	if err != nil {
		return err
	}
	page.Form, page.Key, page.Rate, page.Reason = true, v.form("_key"), v.form("rate"), v.form("reason")
	if err := needs("operate:all", v.Has("operate:all")); err != nil {
		return err
	}
	if page.Reason == "" {
		return v.migrationProblem(page, workflow.Errorf(workflow.InvalidRequest, "say why: the reason is in the audit for good"))
	}
	in := api.NewMigration{Workflow: page.Workflow, From: page.From, To: page.To, Reason: page.Reason}
	if page.Rate != "" {
		if in.PerSecond, err = strconv.Atoi(page.Rate); err != nil || in.PerSecond < 1 {
			return v.migrationProblem(page, workflow.Errorf(workflow.InvalidRequest, "the rate is not an integer from 1 on"))
		}
	}
	a, err := v.ask(http.MethodPost, "/v1/ops/migrations", nil, in, "Idempotency-Key", page.Key)
	if err != nil {
		return v.migrationProblem(page, err)
	}
	var begun inspect.Migration
	if err := a.into(&begun); err != nil {
		return err
	}
	return v.seeOther(v.at("migrations") + "#m" + strconv.FormatInt(begun.ID, 10))
}

// planIn is the plan that an address or a form names.
func planIn(from url.Values) (*newMigrationPage, error) {
	page := &newMigrationPage{}
	page.Workflow = from.Get("workflow")
	for name, into := range map[string]*int{"from": &page.From, "to": &page.To} {
		n, err := strconv.Atoi(from.Get(name))
		if err != nil || n < 1 {
			return nil, workflow.Errorf(workflow.InvalidRequest, "%q is not a version from 1 on", short(from.Get(name), 40))
		}
		*into = n
	}
	return page, nil
}

func (v *visit) showMigration(status int, page *newMigrationPage) error {
	return v.render(status, "newmigration", "New migration", page)
}

// migrationProblem shows the form again with the problem, or that the user lacks the right.
func (v *visit) migrationProblem(page *newMigrationPage, err error) error {
	e, is := errors.AsType[*workflow.Error](err)
	if !is || e.Code == workflow.Unauthorized || e.Code == workflow.Forbidden {
		return err
	}
	page.Problem = e.Message
	return v.showMigration(e.Code.Info().Status, page)
}

func (v *visit) stopMigrationForm() error {
	m, err := get[inspect.Migration](v, "/v1/ops"+segments("migrations", v.r.PathValue("migration")), nil)
	if err == nil {
		err = needs("operate:all", v.Has("operate:all"))
	}
	if err != nil {
		return err
	}
	return v.confirmation(confirm{Heading: "Stop the migration", Button: "Stop it", Bad: true, Reason: true,
		Runbook: runbook("migration-held-up"),
		Says: "No more instances are taken to the new version. Those that are there stay there; the others can be migrated later, by another " +
			"migration.",
		Facts: []attribute{{"Workflow", m.Workflow}, {"From version", strconv.Itoa(m.From)}, {"To version", strconv.Itoa(m.To)},
			{"Migrated", number(m.Migrated) + " of about " + number(m.Expected)}},
		Back: v.at("migrations")})
}

func (v *visit) stopMigration() error {
	return v.send(http.MethodPost, "/v1/ops"+segments("migrations", v.r.PathValue("migration"), "stop"), v.reason(), v.at("migrations"))
}
