package engine

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/internal/kernel/store"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// elsewhere makes a failure to prepare a command NotOnThisNode, where another node may be able to: only who knows the version
// of the instance says what is a transition, or a payload. Of an instance that is not there yet any newer version
// might. q may be a transaction of the caller's. Errors: those of reading, too: nothing is final then.
func (e *Engine) elsewhere(ctx context.Context, q store.Querier, c transitions.Command, failure error) error {
	if len(decide.EarlierReadings(c)) == 0 {
		return failure // no version can read it
	}
	to := addressOf(c)
	again := func() error { _, err := e.prepare(ctx, q, &c); return err }
	return e.elsewhereAbout(ctx, q, to.tenant, transitions.About{Workflow: c.Workflow, Instance: to.id}, failure, again)
}

// elsewhereAbout is elsewhere, of a message too, which nothing may take. Without a workflow it is about any. again prepares
// once more, by what this node has heard meanwhile.
func (e *Engine) elsewhereAbout(
	ctx context.Context, q store.Querier, tenant string, about transitions.About, failure error, again func() error,
) error {
	switch workflow.CodeOf(failure) {
	case workflow.TransitionNotFound, workflow.InvalidPayload, workflow.MessageNotTaken:
	case workflow.InvalidRequest:
		if !errors.Is(failure, decide.ErrOnlyCreates) {
			return failure
		}
	default:
		return failure
	}
	if about.Instance != uuid.Nil {
		inst, err := e.reader.InstanceBy(ctx, q, tenant, about.Instance)
		switch {
		case err == nil:
			if _, err := decide.VersionFor(nil, &inst, e.registry.Find); err != nil {
				return err
			}
			return failure
		case workflow.CodeOf(err) != workflow.InstanceNotFound:
			return err
		}
	}
	behind, err := e.behind(ctx, q, about.Workflow)
	switch {
	case err != nil:
		return err
	case behind || again() == nil:
		return &workflow.Error{Code: workflow.NotOnThisNode, Cause: failure,
			Message: "a newer version of the workflow is known to another node, and not to this one yet; send it again"}
	}
	return failure
}

// behind reports whether a node that is alive knows a newer version of a workflow than this one, or new instances begin with
// another version than this one has heard of. "" is any workflow of this node.
func (e *Engine) behind(ctx context.Context, q store.Querier, name string) (bool, error) {
	p := e.presence
	known, begins, err := p.rows.Elsewhere(ctx, q, p.node, presenceLost)
	if err != nil {
		return false, err
	}
	if !e.registry.Begun(begins) {
		p.want()
		return true, nil
	}
	return e.registry.Behind(name, known), nil
}
