package api

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// verify checks the audit chain of ?instance=, or of all of the tenant's.
func (a *API) verify(r *request) (inspect.Verification, error) {
	return a.engine.Admin().Verify(r.Context(), r.tenant(), r.id("instance"))
}

// keys tells how the keys of commands stand.
func (a *API) keys(r *request) (inspect.Keys, error) {
	return a.engine.Admin().Keys(r.Context(), r.tenant())
}

// retention tells who removes what has expired, and what is kept for whom.
func (a *API) retention(r *request) (inspect.Retention, error) {
	return a.engine.Admin().Retention(r.Context())
}

// metrics serves what is measured, of all tenants.
func (a *API) metrics(w http.ResponseWriter, r *request) error {
	if a.cfg.Metrics == nil {
		return a.nothingHere()
	}
	a.cfg.Metrics.ServeHTTP(w, r.Request)
	return nil
}

// Health is that a node is well.
type Health struct {
	Status  string `json:"status"`            // "ok" of a process that serves, "ready" of a node that can take requests
	Warning string `json:"warning,omitempty"` // a problem that will get worse without action
}

// healthy says that the process serves.
func (a *API) healthy(*request) (Health, error) { return Health{Status: "ok"}, nil }

// readyTimeout bounds how long a readiness probe waits for the database.
const readyTimeout = 2 * time.Second

// ready says whether the node can take requests.
func (a *API) ready(r *request) (Health, error) {
	if err := a.streams.Refusing(); err != nil {
		return Health{}, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
	defer cancel()
	health := Health{Status: "ready"}
	if a.cfg.Health != nil {
		var err error
		if health.Warning, err = a.cfg.Health(); err != nil {
			return Health{}, err
		}
	}
	return health, a.engine.Ready(ctx)
}

// stuck lists the commands that wait for an operator.
func (a *API) stuck(r *request) (out CommandPage, err error) {
	f := inspect.StuckFilter{Tenant: r.tenant(), Workflow: r.text("workflow"), BusinessKey: r.text("business_key"),
		Instance: r.id("instance"), Limit: r.limit()}
	if f.After, err = byStuck.after(r); err != nil {
		return out, err
	}
	list, more, err := a.engine.Admin().Stuck(r.Context(), f)
	return CommandPage{Commands: each(list, listedIn(f.Tenant)), Next: byStuck.next(list, more)}, err
}

// commands lists the commands in flight.
func (a *API) commands(r *request) (out CommandPage, err error) {
	f := inspect.CommandFilter{Tenant: r.tenant(), Kind: inspect.CommandKind(r.text("status")), Workflow: r.text("workflow"),
		Actor: r.text("actor"), Proof: r.text("proof"), Limit: r.limit()}
	if f.After, err = byInFlight.after(r); err != nil {
		return out, err
	}
	page, err := a.engine.Admin().Commands(r.Context(), f)
	out.Commands = each(page.Commands, listedIn(f.Tenant))
	if page.More {
		out.Next = byInFlight.encode(&page.Next)
	}
	return out, err
}

// listedIn is how REST tells of commands in the lists of a tenant's.
func listedIn(tenant string) func(*transitions.Record) wire.CommandStatus {
	return func(r *transitions.Record) wire.CommandStatus {
		s := operatedStatusOf(r)
		s.BusinessKey, s.Undo, s.Effect = r.BusinessKey, r.Phase == transitions.Undoing, r.Effect(tenant)
		return s
	}
}

// paused lists the workflows and the instances of which nothing new is begun.
func (a *API) paused(r *request) (out PausedList, err error) {
	f := inspect.PausedFilter{Tenant: r.tenant(), Workflow: r.text("workflow"), Limit: r.limit()}
	if f.After, err = byPause.after(r); err != nil {
		return out, err
	}
	instances, more, err := a.engine.Admin().PausedInstances(r.Context(), f)
	if err != nil {
		return out, err
	}
	workflows, err := a.engine.Admin().PausedWorkflows(r.Context(), f.Tenant)
	if f.Workflow != "" {
		workflows = slices.DeleteFunc(workflows, func(w inspect.PausedWorkflow) bool { return w.Workflow != f.Workflow })
	}
	return PausedList{Workflows: workflows, Instances: instances, Next: byPause.next(instances, more)}, err
}

// pauseWorkflow lets a workflow begin nothing new.
func (a *API) pauseWorkflow(r *request, in Reason) error {
	return a.engine.Admin().PauseWorkflow(r.Context(), r.tenant(), r.text("workflow"), r.caller.Actor, in.Reason)
}

func (a *API) resumeWorkflow(r *request) error {
	return a.engine.Admin().ResumeWorkflow(r.Context(), r.tenant(), r.text("workflow"))
}

// Operation is what an operator says about a stuck command.
type Operation struct {
	Scope  string         `json:"scope"`
	Key    string         `json:"key"`
	Reason string         `json:"reason,omitempty"`
	Result jsontext.Value `json:"result,omitempty"` // of resolve: what the activity would have returned
}

// Reason is why an operator pauses or resumes.
type Reason struct {
	Reason string `json:"reason,omitempty"`
}

// operateCommand settles a command that waits for an operator.
func operateCommand(action transitions.Action) handler {
	return func(a *API, w http.ResponseWriter, r *request) error {
		in, err := readJSON[Operation](a, w, r)
		if err != nil {
			return err
		}
		if err := transitions.CheckScope(in.Scope); err != nil {
			return err
		}
		if err := transitions.CheckKey(in.Key); err != nil {
			return err
		}
		return a.operate(w, r, transitions.Command{}, transitions.Operation{
			Action: action, Reason: in.Reason, Result: in.Result, Target: transitions.CommandRef{Scope: in.Scope, Key: in.Key},
		})
	}
}

// operateInstance pauses or resumes an instance.
func operateInstance(action transitions.Action) handler {
	return func(a *API, w http.ResponseWriter, r *request) error {
		id, err := a.addressed(r)
		if err != nil {
			return err
		}
		in, err := readJSON[Reason](a, w, r)
		if err != nil {
			return err
		}
		return a.operate(w, r, transitions.Command{Instance: id}, transitions.Operation{Action: action, Reason: in.Reason})
	}
}

func (a *API) operate(w http.ResponseWriter, r *request, cmd transitions.Command, o transitions.Operation) error {
	if err := named(r.Request, &cmd, false); err != nil {
		return err
	}
	if err := a.by(r, &cmd); err != nil {
		return err
	}
	receipt, err := a.engine.Admin().Operate(r.Context(), cmd, o)
	if err != nil {
		return err
	}
	return r.sendReceipt(w, receipt)
}

// NodeList is the nodes, the oldest first.
type NodeList struct {
	Nodes []inspect.NodeInfo `json:"nodes"`
}

func (a *API) nodes(r *request) (NodeList, error) {
	list, err := a.engine.Admin().Nodes(r.Context(), r.tenant())
	for i := range list {
		list[i].BegunAt, list[i].SeenAt = list[i].BegunAt.UTC(), list[i].SeenAt.UTC()
	}
	return NodeList{list}, err
}

// Versions concern all tenants: what there is of them is for an [OperatorOfAll].

// VersionList is the versions of workflows that have ever run here.
type VersionList struct {
	Versions []inspect.WorkflowVersion `json:"versions"`
}

// Beginning is the version with which new instances begin.
type Beginning struct {
	Version int `json:"version"` // where a node knows a newer one, too
}

// versions lists them.
func (a *API) versions(r *request) (VersionList, error) {
	list, err := a.engine.Admin().VersionsInUse(r.Context())
	return VersionList{list}, err
}

// begin says with which version new instances of a workflow begin.
func (a *API) begin(r *request, in Beginning) error {
	if in.Version < 1 {
		return workflow.Errorf(workflow.InvalidRequest, "\"version\" is to be a version from 1 on; DELETE lets each node begin its newest one")
	}
	return a.engine.Admin().BeginVersion(r.Context(), r.text("workflow"), in.Version, r.caller.Actor)
}

// beginNewest removes the default version of a workflow.
func (a *API) beginNewest(r *request) error {
	return a.engine.Admin().BeginVersion(r.Context(), r.text("workflow"), 0, r.caller.Actor)
}
