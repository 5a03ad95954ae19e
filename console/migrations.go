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

// newMigrationPage is a plan, a preview of its effect, and the form that starts it.
type newMigrationPage struct {
	inspect.MigrationPlan
	Preview           *inspect.MigrationPreview // nil before the dry run
	Form              bool                      // show the form
	Key, Rate, Reason string
	Problem           string
}

// migrationForm previews a migration if the address asks for it, because that reads every instance. Then it can be started.
func (v *visit) migrationForm() error {
	page, err := v.plan(v.r.URL.Query())
	if err != nil {
		return err
	}
	page.Key = uuid.NewString()
	if v.Query("try") == "" {
		return v.showMigration(http.StatusOK, page)
	}
	a, err := v.ask(http.MethodPost, "/v1/ops/migrations", url.Values{"dry_run": {"true"}},
		api.NewMigration{Workflow: page.Workflow, From: page.From, To: page.To})
	if err != nil {
		return v.migrationProblem(page, err)
	}
	page.Form, page.Preview = true, &inspect.MigrationPreview{}
	if err := decode(a.body.Bytes(), page.Preview); err != nil {
		return err
	}
	return v.showMigration(http.StatusOK, page)
}

// startMigration starts a migration. Sending the form again does not start another one.
func (v *visit) startMigration() error {
	page, err := v.plan(v.r.PostForm)
	if err != nil {
		return err
	}
	page.Form, page.Key, page.Rate, page.Reason = true, v.form("_key"), v.form("rate"), v.form("reason")
	if page.Reason == "" {
		return v.migrationProblem(page, errNoReason)
	}
	in := api.NewMigration{Workflow: page.Workflow, From: page.From, To: page.To, Reason: page.Reason}
	if page.Rate != "" {
		if in.PerSecond, err = strconv.Atoi(page.Rate); err != nil || in.PerSecond < 1 {
			return v.migrationProblem(page, workflow.Errorf(workflow.InvalidRequest, "the rate is not a positive integer"))
		}
	}
	a, err := v.ask(http.MethodPost, "/v1/ops/migrations", nil, in, "Idempotency-Key", page.Key)
	if err != nil {
		return v.migrationProblem(page, err)
	}
	var started inspect.Migration
	if err := decode(a.body.Bytes(), &started); err != nil {
		return err
	}
	return v.seeOther(v.At("migrations") + "#m" + strconv.FormatInt(started.ID, 10))
}

// plan returns the plan in an address or a form. Errors: Forbidden, InvalidRequest.
func (v *visit) plan(from url.Values) (*newMigrationPage, error) {
	if err := requireGrant("operate:all", v.Has("operate:all")); err != nil {
		return nil, err
	}
	page := &newMigrationPage{}
	page.Workflow = from.Get("workflow")
	for name, into := range map[string]*int{"from": &page.From, "to": &page.To} {
		n, err := strconv.Atoi(from.Get(name))
		if err != nil || n < 1 {
			return nil, workflow.Errorf(workflow.InvalidRequest, "%q is not the number of a version", short(from.Get(name), 40))
		}
		*into = n
	}
	return page, nil
}

func (v *visit) showMigration(status int, page *newMigrationPage) error {
	return v.render(status, "newmigration", "New migration", page)
}

// migrationProblem shows the form again with the problem.
func (v *visit) migrationProblem(page *newMigrationPage, err error) error {
	e, is := errors.AsType[*workflow.Error](err)
	if !is || e.Code == workflow.Unauthorized || e.Code == workflow.Forbidden {
		return err
	}
	page.Problem = e.Message
	return v.showMigration(e.Code.Info().Status, page)
}

var migrationChanges = operations{"stop": {Heading: "Stop the migration", Button: "Stop it", Bad: true, Reason: true,
	Runbook: "migration-held-up", Grant: "operate:all",
	Says: "No more instances are migrated. Those with the new version keep it; another migration can continue with the others."}}

func (v *visit) stopMigrationForm() error {
	c, _, err := v.operation(migrationChanges)
	if err != nil {
		return err
	}
	m, err := get[inspect.Migration](v, v1("ops", "migrations", v.r.PathValue("migration")), nil)
	if err != nil {
		return err
	}
	c.Back = v.At("migrations")
	c.Facts = []attribute{{"Workflow", m.Workflow}, {"From version", strconv.Itoa(m.From)}, {"To version", strconv.Itoa(m.To)},
		{"Migrated", number(m.Migrated) + " of about " + number(m.Expected)}}
	return v.confirmation(c)
}

func (v *visit) stopMigration() error {
	if _, _, err := v.operation(migrationChanges); err != nil {
		return err
	}
	return v.send(http.MethodPost, v1("ops", "migrations", v.r.PathValue("migration"), "stop"), v.reason(), v.At("migrations"))
}
