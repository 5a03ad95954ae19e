package api

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/api/internal/stream"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Engine is what the interface is served by. Its errors are *workflow.Error;
// any other is answered as an internal error, and its text is not shown.
type Engine interface {
	// What is followed: the log, commands, and the workflows that filters name.
	stream.Engine

	// Submit runs a command or replays its answer. A refusal that was decided is
	// a receipt with a status of 400 or more; an error means that nothing was
	// stored. What is in flight, now or already, is a receipt with the status 202.
	Submit(ctx context.Context, c transitions.Command) (transitions.Receipt, error)
	// SubmitMany runs commands and returns one reply for each, in order.
	SubmitMany(ctx context.Context, cs []transitions.Command) []transitions.Reply
	// DryRun returns what Submit would answer, and writes nothing. It needs no key.
	DryRun(ctx context.Context, c transitions.Command) (transitions.Receipt, error)
	// Await waits for the end of a command in flight and returns its answer.
	// Errors: the context's or TimedOut when ctx ends; CommandNotFound,
	// KeyExpired, Unavailable, ShuttingDown.
	Await(ctx context.Context, tenant, scope, key string) (transitions.Receipt, error)
	// Cancel asks a command in flight to stop and returns it as it stands; one that
	// is finished stays as it is. Errors: CommandNotFound, KeyExpired.
	Cancel(ctx context.Context, tenant, scope, key, by string) (transitions.Record, error)

	// Of one instance, InstanceNotFound where there is none, also at a version that it
	// never had, and before its first one. ViewByKey: WorkflowNotFound too.

	Instance(ctx context.Context, tenant string, id uuid.UUID) (transitions.Instance, error)
	View(ctx context.Context, tenant string, id uuid.UUID) (inspect.View, error)
	ViewByKey(ctx context.Context, tenant, workflow, businessKey string) (inspect.View, error)
	InstanceAt(ctx context.Context, tenant string, id uuid.UUID, version int64) (inspect.Past, error)
	InstanceAsOf(ctx context.Context, tenant string, id uuid.UUID, at time.Time) (inspect.Past, error)
	Case(ctx context.Context, tenant string, id uuid.UUID) (inspect.Case, error)
	// History returns up to limit entries with a version greater than after.
	History(ctx context.Context, tenant string, id uuid.UUID, after int64, limit int) ([]transitions.Entry, error)
	// Explain says what the actor can do with it now, why not, and what is stuck.
	Explain(ctx context.Context, tenant string, id uuid.UUID, actor string, roles []string) (inspect.Explanation, error)

	// Lists. More says that there is another page. Errors: InvalidRequest,
	// WorkflowNotFound; of a sink's, NotFound. A tenant "" is all of them.

	Instances(ctx context.Context, f inspect.Filter) (inspect.Page, error)
	// Children lists the instances that one has started. Error: InstanceNotFound too.
	Children(ctx context.Context, f inspect.ChildFilter) (inspect.ChildPage, error)
	Counts(ctx context.Context, f inspect.CountFilter) (inspect.Counts, error)
	Stuck(ctx context.Context, f inspect.StuckFilter) (list []transitions.Record, more bool, err error)
	// Commands lists those in flight.
	Commands(ctx context.Context, f inspect.CommandFilter) (inspect.CommandPage, error)
	PausedWorkflows(ctx context.Context, tenant string) ([]inspect.PausedWorkflow, error)
	PausedInstances(ctx context.Context, f inspect.PausedFilter) (list []inspect.PausedInstance, more bool, err error)
	DeadMessages(ctx context.Context, f inspect.DeadMessageFilter) (list []inspect.DeadMessage, more bool, err error)
	Sinks(ctx context.Context, tenant string) ([]inspect.SinkInfo, error)
	SinkCursors(ctx context.Context, f inspect.CursorFilter) (list []inspect.SinkCursor, more bool, err error)
	DeadLetters(ctx context.Context, f inspect.DeadFilter, p inspect.DeadPage) (list []inspect.DeadLetter, more bool, err error)
	Keys(ctx context.Context, tenant string) (inspect.Keys, error)
	Retention(ctx context.Context) (inspect.Retention, error)
	// VersionsInUse lists the versions of workflows that have ever run here, of all tenants.
	VersionsInUse(ctx context.Context) ([]inspect.Version, error)
	// Nodes lists the nodes, what they know and what they do for a tenant.
	Nodes(ctx context.Context, tenant string) ([]inspect.NodeInfo, error)
	// BeginVersion sets the version that new instances of a workflow begin with, on all nodes, and returns when they have confirmed;
	// 0 is the newest that each knows.
	// Error: WorkflowNotFound.
	BeginVersion(ctx context.Context, workflow string, version int, actor string) error
	// Workflows returns the newest version of each workflow, by name.
	Workflows() []*workflow.Workflow

	// Operate does what an operator asks, as a command that is audited and
	// replayed. Errors: those of Submit; CommandNotFound.
	Operate(ctx context.Context, c transitions.Command, o transitions.Operation) (transitions.Receipt, error)
	// DryRunOperation says what Operate would answer of an instance, and how that would be then; it writes nothing.
	DryRunOperation(ctx context.Context, c transitions.Command, o transitions.Operation) (transitions.Receipt, *transitions.Instance, error)
	// PauseWorkflow lets the tenant's instances of a workflow begin nothing new.
	// Error: WorkflowNotFound.
	PauseWorkflow(ctx context.Context, tenant, workflow, actor, reason string) error
	// ResumeWorkflow is the end of that. Error: WorkflowNotFound.
	ResumeWorkflow(ctx context.Context, tenant, workflow string) error

	// Consume does once what a message asks for. A receipt that is refused, and an
	// error that may not be retried by its code, say that it never will by itself.
	// Errors: those of Submit; MessageReused, MessageNotTaken.
	Consume(ctx context.Context, m transitions.Message) (transitions.Receipt, error)
	// DeadMessage returns one with its body. Error: NotFound.
	DeadMessage(ctx context.Context, r transitions.MessageRef) (inspect.DeadMessage, error)
	// RetryMessage consumes a dead message again. Errors: NotFound; those of Consume.
	RetryMessage(ctx context.Context, r transitions.MessageRef, by, reason string) (transitions.Receipt, error)
	// DiscardMessage says that a dead message is never to be done. Error: NotFound.
	DiscardMessage(ctx context.Context, r transitions.MessageRef, by, reason string) (inspect.DeadMessage, error)

	// Redrive lets dead letters be delivered again, SkipDead says that they never are.
	// Both return how many.
	Redrive(ctx context.Context, f inspect.DeadFilter, by, reason string) (int64, error)
	SkipDead(ctx context.Context, f inspect.DeadFilter, by, reason string) (int64, error)
	// PauseSink lets nothing more be delivered to a sink, for any tenant.
	PauseSink(ctx context.Context, sink, by, reason string) error
	// ResumeSink is the end of that.
	ResumeSink(ctx context.Context, sink string) error
	// ForgetSink gives a sink up that no node has any more.
	ForgetSink(ctx context.Context, sink string) error
	// MoveSink puts a sink's cursor in a tenant's log to a position.
	MoveSink(ctx context.Context, sink, tenant string, position int64, by, reason string) error

	// PreviewMigration says what a migration would do. Errors: WorkflowNotFound, NotOnThisNode.
	PreviewMigration(ctx context.Context, workflow string, from, to int) (inspect.MigrationPreview, error)
	// MigrateInstances begins one. Errors: those of PreviewMigration; Conflict, KeyReused, InvalidRequest.
	MigrateInstances(ctx context.Context, r inspect.MigrationRequest) (inspect.Migration, error)
	// Migrations lists the newest. Migration is one, which StopMigration ends. Error: NotFound.
	Migrations(ctx context.Context) ([]inspect.Migration, error)
	Migration(ctx context.Context, id int64) (inspect.Migration, error)
	StopMigration(ctx context.Context, id int64, actor, reason string) (inspect.Migration, error)
	// MigrationPlans lists the plans that this node has.
	MigrationPlans() []inspect.MigrationPlan

	// Verify checks the audit chain of an instance, or of all of the tenant's
	// for the zero id.
	Verify(ctx context.Context, tenant string, id uuid.UUID) (inspect.Verification, error)
	// Ready reports why the node cannot serve now, nil when it can.
	Ready(ctx context.Context) error
}
