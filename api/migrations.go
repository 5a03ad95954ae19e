package api

import (
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Migrations concern all tenants: a version is the installation's. So all but that of one instance are for an [OperatorOfAll].

// What operators read of migrations, with the names that it has over HTTP and with -o json.
type (
	Migration struct {
		ID        int64              `json:"id"`
		Workflow  string             `json:"workflow"`
		From      int                `json:"from"`
		To        int                `json:"to"`
		PerSecond int                `json:"per_second"`
		Actor     string             `json:"actor"`
		Reason    string             `json:"reason,omitempty"`
		CreatedAt time.Time          `json:"created_at"`
		Expected  int64              `json:"expected"` // instances when it was asked for, about
		Migrated  int64              `json:"migrated"`
		Skipped   int64              `json:"skipped"` // gone there before, or ended
		Rejected  int64              `json:"rejected"`
		Waiting   int64              `json:"waiting"`            // could not be taken when all were looked at last, and are tried again
		Held      string             `json:"held,omitempty"`     // why it does not go on now, or why some wait
		Node      string             `json:"node,omitempty"`     // that does it now
		Refusals  []MigrationRefusal `json:"refusals,omitempty"` // why some are rejected
		StoppedAt time.Time          `json:"stopped_at,omitzero"`
		EndedAt   time.Time          `json:"ended_at,omitzero"`

		// Who has asked for its end first, and why.
		StoppedBy  string `json:"stopped_by,omitempty"`
		StopReason string `json:"stop_reason,omitempty"`
	}
	MigrationRefusal struct {
		State    workflow.State `json:"state,omitempty"`
		Reason   string         `json:"reason,omitempty"` // "": all that are not told
		Count    int64          `json:"count"`
		Instance uuid.UUID      `json:"instance,omitzero"` // one of them
	}
	MigrationList struct {
		Migrations []Migration     `json:"migrations"`
		Plans      []MigrationPlan `json:"plans"` // of the node that answers: what can be begun there
	}
	MigrationPlan struct {
		Workflow string `json:"workflow"`
		From     int    `json:"from"`
		To       int    `json:"to"`
	}
	MigrationPreview struct {
		Workflow string             `json:"workflow"`
		From     int                `json:"from"`
		To       int                `json:"to"`
		At       time.Time          `json:"at"`
		Nodes    []string           `json:"nodes_without,omitempty"` // which do not know the version: nothing is migrated until they are gone
		States   []MigrationState   `json:"states"`
		Refusals []MigrationRefusal `json:"refusals,omitempty"`
	}
	MigrationState struct {
		State    workflow.State `json:"state"`
		To       workflow.State `json:"to,omitempty"`
		Count    int64          `json:"count"`
		Migrated int64          `json:"migrated"` // would go on
		Waiting  int64          `json:"waiting"`  // would have to wait for an activity
		Rejected int64          `json:"rejected"`
		Overdue  int64          `json:"overdue"` // of those that would go on: with a timer then whose time has passed, and which fires at once
	}
)

// NewMigration is what a migration of all instances is asked with.
type NewMigration struct {
	Workflow  string `json:"workflow"`
	From      int    `json:"from"`
	To        int    `json:"to"`
	PerSecond int    `json:"per_second,omitempty"` // instances, at most; without it 500
	Reason    string `json:"reason,omitempty"`
}

// MigrationOf is what the interface shows of a migration.
func MigrationOf(m *inspect.Migration) Migration {
	return Migration{ID: m.ID, Workflow: m.Workflow, From: m.From, To: m.To, PerSecond: m.PerSecond, Actor: m.Actor, Reason: m.Reason,
		CreatedAt: m.CreatedAt, Expected: m.Expected, Migrated: m.Migrated, Skipped: m.Skipped, Rejected: m.Rejected, Waiting: m.Waiting,
		Held: m.Held, Node: m.Node, Refusals: refusalsOf(m.Refusals), StoppedAt: m.StoppedAt, EndedAt: m.EndedAt,
		StoppedBy: m.StoppedBy, StopReason: m.StopReason}
}

// PreviewOf is what the interface shows of a preview.
func PreviewOf(p *inspect.MigrationPreview) MigrationPreview {
	return MigrationPreview{Workflow: p.Workflow, From: p.From, To: p.To, At: p.At, Nodes: p.Lacking, Refusals: refusalsOf(p.Refusals),
		States: each(p.States, func(s *inspect.MigrationState) MigrationState { return MigrationState(*s) })}
}

func refusalsOf(list []inspect.MigrationRefusal) []MigrationRefusal {
	return each(list, func(r *inspect.MigrationRefusal) MigrationRefusal { return MigrationRefusal(*r) })
}

// migrations lists the newest.
func (a *API) migrations(r *request) (MigrationList, error) {
	list, err := a.engine.Admin().Migrations(r.Context())
	return MigrationList{
		Migrations: each(list, MigrationOf),
		Plans:      PlansOf(a.engine.Admin().MigrationPlans()),
	}, err
}

// PlansOf is what the interface shows of plans.
func PlansOf(list []inspect.MigrationPlan) []MigrationPlan {
	return each(list, func(p *inspect.MigrationPlan) MigrationPlan { return MigrationPlan(*p) })
}

// migration is one of them.
func (a *API) migration(r *request) (Migration, error) {
	m, err := a.engine.Admin().Migration(r.Context(), r.integer("migration"))
	return MigrationOf(&m), err
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
		return sendJSON(w, http.StatusOK, PreviewOf(&p))
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
	return sendJSON(w, http.StatusAccepted, MigrationOf(&m))
}

// stopMigration ends one.
func (a *API) stopMigration(r *request, in Reason) (Migration, error) {
	m, err := a.engine.Admin().StopMigration(r.Context(), r.integer("migration"), r.caller.Actor, in.Reason)
	return MigrationOf(&m), err
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
