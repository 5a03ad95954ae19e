package api

import (
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Migrations concern all tenants: a version is the installation's. So all but that of one instance are for an [OperatorOfAll].

// MigrationList is the newest migrations, and the plans of the node that answers.
type MigrationList struct {
	Migrations []inspect.Migration     `json:"migrations"`
	Plans      []inspect.MigrationPlan `json:"plans"`
}

// NewMigration is what a migration of all instances is asked with.
type NewMigration struct {
	Workflow  string `json:"workflow"`
	From      int    `json:"from"`
	To        int    `json:"to"`
	PerSecond int    `json:"per_second,omitempty"` // instances, at most; without it 500
	Reason    string `json:"reason,omitempty"`
}

// migrations lists the newest.
func (a *API) migrations(r *request) (MigrationList, error) {
	list, err := a.engine.Admin().Migrations(r.Context())
	return MigrationList{Migrations: list, Plans: a.engine.Admin().MigrationPlans()}, err
}

// migration is one of them.
func (a *API) migration(r *request) (inspect.Migration, error) {
	return a.engine.Admin().Migration(r.Context(), r.integer("migration"))
}

// migrate begins one, or says what it would do. An idempotency key is optional.
func (a *API) migrate(w http.ResponseWriter, r *request) error {
	in, err := readJSON[NewMigration](a, w, r)
	if err != nil {
		return err
	}
	if r.boolean("dry_run") {
		p, err := a.engine.Admin().PreviewMigration(r.Context(), in.Workflow, in.From, in.To)
		if err != nil {
			return err
		}
		w.Header().Set(headerDryRun, "true")
		return sendJSON(w, http.StatusOK, p)
	}
	var by transitions.Command
	if err := named(r.Request, &by, true); err != nil {
		return err
	}
	if err := a.by(r, &by); err != nil {
		return err
	}
	m, err := a.engine.Admin().MigrateInstances(r.Context(), inspect.MigrationRequest{Workflow: in.Workflow, From: in.From, To: in.To,
		PerSecond: in.PerSecond, Actor: by.Actor, Proof: by.Proof, Reason: in.Reason, Key: by.Key})
	if err != nil {
		return err
	}
	return sendJSON(w, http.StatusAccepted, m)
}

// stopMigration ends one.
func (a *API) stopMigration(r *request, in Reason) (inspect.Migration, error) {
	return a.engine.Admin().StopMigration(r.Context(), r.integer("migration"), r.caller.Actor, in.Reason)
}

// InstanceMigration is to which version an instance goes.
type InstanceMigration struct {
	To     int    `json:"to"`
	Reason string `json:"reason,omitempty"`
}

// migrateInstance takes one instance to another version.
func (a *API) migrateInstance(w http.ResponseWriter, r *request) error {
	id, err := a.addressed(r)
	if err != nil {
		return err
	}
	in, err := readJSON[InstanceMigration](a, w, r)
	if err != nil {
		return err
	}
	return a.operateOrTry(w, r, transitions.Command{Instance: id},
		transitions.Operation{Action: transitions.Migrate, Reason: in.Reason, To: in.To})
}

// Correction is how an operator corrects an instance.
type Correction struct {
	State  workflow.State `json:"state,omitempty"` // in which it goes on; without it, that of before
	Data   jsontext.Value `json:"data,omitempty"`  // the members that change; null is the zero value
	Reason string         `json:"reason"`          // required
}

// correctInstance puts an instance into another state, or corrects its data.
func (a *API) correctInstance(w http.ResponseWriter, r *request) error {
	id, err := a.addressed(r)
	if err != nil {
		return err
	}
	in, err := readJSON[Correction](a, w, r)
	if err != nil {
		return err
	}
	o := transitions.Operation{Action: transitions.Correct, Reason: in.Reason, State: in.State, Data: in.Data}
	return a.operateOrTry(w, r, transitions.Command{Instance: id}, o)
}

// operateOrTry does what an operator asks of an instance, or says what would come of it.
func (a *API) operateOrTry(w http.ResponseWriter, r *request, cmd transitions.Command, o transitions.Operation) (err error) {
	if cmd.IfVersion, err = ifMatch(r.Request); err != nil {
		return err
	}
	if !r.boolean(dryRun.Name) {
		return a.operate(w, r, cmd, o)
	}
	if err := named(r.Request, &cmd, true); err != nil {
		return err
	}
	if err := a.by(r, &cmd); err != nil {
		return err
	}
	receipt, _, err := a.engine.Admin().DryRunOperation(r.Context(), cmd, o)
	if err != nil {
		return err
	}
	w.Header().Set(headerDryRun, "true")
	send(w, receipt.Status, mediaOf(receipt), receipt.Body)
	return nil
}
