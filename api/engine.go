package api

import (
	"context"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Engine is what the interface is served by. Its errors are *workflow.Error;
// any other is answered as an internal error, and its text is not shown.
type Engine interface {
	// Submit runs a command or replays its answer. A refusal that was decided is
	// a receipt with a status of 400 or more; an error means that nothing was
	// stored. What is in flight, now or already, is a receipt with the status 202.
	Submit(ctx context.Context, c transitions.Command) (transitions.Receipt, error)
	// SubmitMany runs commands and returns one reply for each, in order.
	SubmitMany(ctx context.Context, cs []transitions.Command) []transitions.Reply
	// DryRun returns what Submit would answer, and writes nothing. It needs no key.
	DryRun(ctx context.Context, c transitions.Command) (transitions.Receipt, error)

	// Instance returns an instance. Error: InstanceNotFound.
	Instance(ctx context.Context, tenant string, id uuid.UUID) (transitions.Instance, error)
	// InstanceByKey returns the instance of a business key. Errors:
	// WorkflowNotFound, InstanceNotFound.
	InstanceByKey(ctx context.Context, tenant, workflow, businessKey string) (transitions.Instance, error)
	// Instances returns a page of instances.
	Instances(ctx context.Context, f transitions.Filter) (transitions.Page, error)
	// History returns up to limit audit entries of an instance with a version
	// greater than after. Error: InstanceNotFound.
	History(ctx context.Context, tenant string, id uuid.UUID, after int64, limit int) ([]transitions.Entry, error)
	// Explain says what the actor can do with the instance now, and why not.
	// Error: InstanceNotFound.
	Explain(ctx context.Context, tenant string, id uuid.UUID, actor string, roles []string) ([]transitions.Option, error)
	// Command returns what is stored under a key, its body as it was answered.
	// Errors: CommandNotFound, KeyExpired.
	Command(ctx context.Context, tenant, scope, key string) (transitions.Record, error)

	// Watch returns a watcher of a command.
	Watch(tenant, scope, key string) transitions.Watcher
	// Await waits for the end of a command in flight and returns its answer.
	// Errors: the context's or TimedOut when ctx ends; CommandNotFound,
	// KeyExpired, Unavailable, ShuttingDown.
	Await(ctx context.Context, tenant, scope, key string) (transitions.Receipt, error)
	// Cancel asks a command in flight to stop and returns it as it stands; one that
	// is finished stays as it is. Errors: CommandNotFound, KeyExpired.
	Cancel(ctx context.Context, tenant, scope, key, by string) (transitions.Record, error)

	// Operate does what an operator asks, as a command that is audited and
	// replayed. Errors: those of Submit; CommandNotFound.
	Operate(ctx context.Context, c transitions.Command, o transitions.Operation) (transitions.Receipt, error)
	// Stuck lists the commands that wait for a person, and says whether there are
	// more. Error: WorkflowNotFound.
	Stuck(ctx context.Context, f transitions.StuckFilter) (list []transitions.Record, more bool, err error)
	// PauseWorkflow lets the tenant's instances of a workflow begin nothing new.
	// Error: WorkflowNotFound.
	PauseWorkflow(ctx context.Context, tenant, workflow, actor, reason string) error
	// ResumeWorkflow is the end of that. Error: WorkflowNotFound.
	ResumeWorkflow(ctx context.Context, tenant, workflow string) error
	// PausedWorkflows lists what the tenant has paused.
	PausedWorkflows(ctx context.Context, tenant string) ([]transitions.PausedWorkflow, error)

	// Workflows returns the newest version of each workflow, by name.
	Workflows() []*workflow.Workflow
	// Workflow returns a workflow; version 0 is the newest. Error:
	// WorkflowNotFound.
	Workflow(name string, version int) (*workflow.Workflow, error)
	// Verify checks the audit chain of an instance, or of all of the tenant's
	// for the zero id.
	Verify(ctx context.Context, tenant string, id uuid.UUID) (transitions.Verification, error)

	// Head returns the newest position of the tenant's log, 0 for an empty one.
	Head(ctx context.Context, tenant string) (int64, error)
	// Follow returns a reader of the tenant's log after a position.
	Follow(tenant string, after int64) transitions.Follower
	// Ready reports why the node cannot serve now, nil when it can.
	Ready(ctx context.Context) error
}
